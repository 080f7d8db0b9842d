#pragma once
// The tile of a wave of ternary_dots.cu, from which the host computes the number of groups.

#include <cstdint>

namespace bitnet::kernels {

inline constexpr uint32_t rows_of_dots = 4, tokens_of_dots = 4;

}  // namespace bitnet::kernels
