#pragma once
// The platform on the stand-in, and its controls.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "bitnet/abi/host.h"
#include "platform.hpp"
#include "stand_in.hpp"

namespace bitnet::rocm::test {

struct controls {
  decltype(&bitnet_stand_in_fail) fail;
  decltype(&bitnet_stand_in_calls) calls;
  decltype(&bitnet_stand_in_objects) objects;
  decltype(&bitnet_stand_in_failed) failed;
  decltype(&bitnet_stand_in_launches) launches;
};
// nullptr if the runtime that the loader finds is another one.
inline const controls* find_controls() {
  void* runtime = dlopen(usual_runtimes[0], RTLD_NOW);
  if (!runtime) return nullptr;
  static controls found;
  const auto find = [runtime](auto& to, const char* name) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(runtime, name));
  };
  find(found.fail, "bitnet_stand_in_fail");
  find(found.calls, "bitnet_stand_in_calls");
  find(found.objects, "bitnet_stand_in_objects");
  find(found.failed, "bitnet_stand_in_failed");
  find(found.launches, "bitnet_stand_in_launches");
  return found.fail ? &found : nullptr;
}

inline std::unique_ptr<gpu::platform> open_quietly(std::string& why) {
  return open_platform([](uint32_t, const std::string&) {}, why, false);
}

}  // namespace bitnet::rocm::test
