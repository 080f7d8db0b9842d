#pragma once
// The work of kernels between two readings of a backend's counters.

#include <span>
#include <string_view>
#include <vector>

#include "bitnet/abi/program.h"

namespace bitnet::trace {

// Plugins fill the id: it may lack its NUL.
[[nodiscard]] std::string_view id_of(const bitnet_kernel_stat& stat);
// Whether both have the same id and op.
[[nodiscard]] bool is_same_kernel(const bitnet_kernel_stat& a, const bitnet_kernel_stat& b);

// Work of each kernel since the earlier reading: differences of counts, which only grow. Kernels
// without work are left out; a count that fell counts as unchanged.
[[nodiscard]] std::vector<bitnet_kernel_stat> since(std::span<const bitnet_kernel_stat> before,
                                                    std::span<const bitnet_kernel_stat> now);

}  // namespace bitnet::trace
