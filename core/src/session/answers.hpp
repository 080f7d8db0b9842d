#pragma once
// Answers of a plugin that bitnet/abi/answers.h calls wrong, as failures.

#include <string>
#include <vector>

#include "base/result.hpp"
#include "bitnet/abi/answers.h"

namespace bitnet::session {

// `wrong` is what answers.h says of the answer of `slot`, NULL if nothing is. BITNET_REJECTED.
[[nodiscard]] result<void> sane(const char* wrong, const char* slot);

// What a program's kernels did so far.
[[nodiscard]] result<std::vector<bitnet_kernel_stat>> stats_of(const bitnet_backend_v0& table,
                                                               bitnet_program* program);

}  // namespace bitnet::session
