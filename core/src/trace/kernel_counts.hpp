#pragma once
// What kernels did between two readings of a backend's counters.

#include <span>
#include <string_view>
#include <vector>

#include "bitnet/abi/program.h"

namespace bitnet::trace {

// Plugins fill the id: it may have no end.
[[nodiscard]] std::string_view id_of(const bitnet_kernel_stat& stat);
// Whether both count one kernel: id and op.
[[nodiscard]] bool is_same_kernel(const bitnet_kernel_stat& a, const bitnet_kernel_stat& b);

// What each kernel did since the counters before: differences of counts that only grow. Kernels
// that did nothing are left out; a count that fell is taken for one that stayed.
[[nodiscard]] std::vector<bitnet_kernel_stat> since(std::span<const bitnet_kernel_stat> before,
                                                    std::span<const bitnet_kernel_stat> now);

}  // namespace bitnet::trace
