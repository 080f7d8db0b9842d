#pragma once
// The platform on the stand-in, and how often it launched a kernel.

#include <memory>
#include <string>

#include "bitnet/abi/host.h"
#include "platform.hpp"
#include "stand_in.hpp"
#include "stand_ins/controls.hpp"

namespace bitnet::rocm::test {

// nullptr if the runtime that the loader finds is another one.
inline decltype(&bitnet_stand_in_launches) find_launches() {
  decltype(&bitnet_stand_in_launches) found = nullptr;
  if (void* runtime = dlopen(usual_runtimes[0], RTLD_NOW))
    bitnet::test::find_control(runtime, "bitnet_stand_in_launches", found);
  return found;
}

inline std::unique_ptr<gpu::platform> open_quietly(std::string& why) {
  return open_platform([](uint32_t, const std::string&) {}, why, {.checks = false});
}

}  // namespace bitnet::rocm::test
