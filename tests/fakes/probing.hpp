#pragma once
// How tests that select backends have them probed.

#include <cstdlib>
#include <filesystem>

#include "probe/service.hpp"

namespace bitnet::test {

// Probing with the helper of the build tree and nothing remembered, as on a machine with devices.
// Waits long, and at no lower priority: the machine may be busy, and no test that takes these has a
// backend that hangs.
inline probe::settings probing() {
  const char* tree = std::getenv("BITNET_BINARY_DIR");
  probe::settings s;
  s.helper = std::filesystem::path(tree == nullptr ? "." : tree) / BITNET_TEST_PROBE_HELPER;
  s.wait_ms = 60'000;
  s.always_needed = true;
  s.most_children = 4;
  s.shows_devices = true;
  return s;
}

}  // namespace bitnet::test
