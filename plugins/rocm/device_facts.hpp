#pragma once
// What the runtime says about its devices, and which of them this backend can use.

#include <string>
#include <vector>

#include "gpu-common/driver.hpp"
#include "library.hpp"

namespace bitnet::rocm {

struct device_facts {
  int id = 0;
  gpu::facts common;
  std::string target;   // "gfx90a": what code is compiled for
  uint32_t lanes = 32;  // of a wave
  std::string refusal;  // not empty: this device cannot be used, and why
};

// All devices that the runtime shows, in its order. `why` says what the user can do when not one
// usable device is among them; `kfd` is as in open_library.
std::vector<device_facts> list_devices(const library& hip, const char* kfd, std::string& why);

// "gfx90a" of "gfx90a:sramecc+:xnack-"; empty if that is no name of a target.
std::string target_of(const std::string& architecture);

}  // namespace bitnet::rocm
