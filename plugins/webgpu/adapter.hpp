#pragma once
// An adapter's abilities, in gpu-common's terms.

#include <optional>
#include <string>
#include <vector>

#include "gpu-common/driver.hpp"
#include "kernel_text.hpp"
#include "runtime.hpp"

namespace bitnet::webgpu {

// Settings of the user.
struct wishes {
  bool subgroups = true;   // false: as if no device had them
  bool packed_dot = true;  // false: as if the language had no dot4I8Packed
  bool software = true;    // false: adapters that compute on the CPU are left out
};

struct adapter {
  adapter_handle handle = nullptr;
  limits most;
  dialect language;
  bool timestamps = false;
  gpu::facts about;
};

// Finds all adapters that the standard can request: high-performance, low-power and software, each
// once. The caller does not hold the lock, and releases the adapters.
std::vector<adapter> find_adapters(const runtime& on, const wishes& user,
                                   std::vector<std::string>& refusals);

}  // namespace bitnet::webgpu
