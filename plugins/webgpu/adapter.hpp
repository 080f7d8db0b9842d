#pragma once
// What the library says of an adapter, in the words of gpu-common.

#include <optional>
#include <string>
#include <vector>

#include "gpu-common/driver.hpp"
#include "kernel_text.hpp"
#include "runtime.hpp"

namespace bitnet::webgpu {

// What the user asks for.
struct wishes {
  bool subgroups = true;   // false: as if no device had them
  bool packed_dot = true;  // false: as if the language had no dot4I8Packed
  bool software = true;    // false: adapters that compute on the processor are left out
};

struct adapter {
  adapter_handle handle = nullptr;
  limits most;
  dialect language;
  bool timestamps = false;
  gpu::facts about;
};

// All that the standard lets be found: the fast one, the thrifty one, and the one in software, each
// once. The lock is not held. The caller releases them.
std::vector<adapter> find_adapters(const runtime& on, const wishes& user,
                                   std::vector<std::string>& refusals);

}  // namespace bitnet::webgpu
