#pragma once
// The demo model of this tree, for tests that get the tree's place from ctest.

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace bitnet::test {

// "" where there is none.
inline std::string demo_model() {
  const char* source = std::getenv("BITNET_SOURCE_DIR");
  if (source == nullptr) return {};
  std::error_code none;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(source) / "models", none))
    if (entry.path().extension() == ".gguf") return entry.path();
  return {};
}

}  // namespace bitnet::test
