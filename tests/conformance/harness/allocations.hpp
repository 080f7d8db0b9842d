#pragma once
// Memory that the host's C library refuses to the plugin alone.

#include <cstdint>

namespace bitnet::conformance::allocations {

#if defined(BITNET_SANITIZED)  // whose runtime has the allocator
inline constexpr bool can_fail = false;
#else
inline constexpr bool can_fail = true;
#endif

// From now on counts what the plugin's own code asks for, in any thread, and refuses the request
// with this number, from 0; negative: none. What libraries ask for on its behalf is not counted.
void refuse(int64_t which);

// Requests since refuse().
int64_t requests();

}  // namespace bitnet::conformance::allocations
