#pragma once
// The platform of this process, and the controls of the stand-in that its loader opened.

#include <dlfcn.h>

#include <memory>
#include <string>

#include "platform.hpp"
#include "stand_in.hpp"

namespace bitnet::level_zero::test {

struct controls {
  decltype(&bitnet_stand_in_fail) fail = nullptr;
  decltype(&bitnet_stand_in_calls) calls = nullptr;
  decltype(&bitnet_stand_in_objects) objects = nullptr;
  decltype(&bitnet_stand_in_failed) failed = nullptr;
};

// nullptr where the loader has not opened the stand-in.
inline const controls* find_controls() {
  void* const driver = dlopen(BITNET_STAND_IN_FILE, RTLD_NOW | RTLD_NOLOAD);
  if (!driver) return nullptr;
  static controls found;
  const auto find = [&]<class F>(F& to, const char* name) {
    to = reinterpret_cast<F>(dlsym(driver, name));
  };
  find(found.fail, "bitnet_stand_in_fail");
  find(found.calls, "bitnet_stand_in_calls");
  find(found.objects, "bitnet_stand_in_objects");
  find(found.failed, "bitnet_stand_in_failed");
  return &found;
}

// nullptr, and `why`, where there is no loader.
inline std::unique_ptr<platform> open_platform(std::string& why, bool sysman_enabled = false) {
  const library* const calls = library_of_process(why);
  if (!calls) return nullptr;
  auto out = std::make_unique<platform>(*calls, sysman_enabled);
  return out->start([&](const std::string& line) { why += line; }, why) ? std::move(out) : nullptr;
}

}  // namespace bitnet::level_zero::test
