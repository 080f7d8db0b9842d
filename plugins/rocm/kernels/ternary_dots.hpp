#pragma once
// What a wave of ternary_dots.cu takes together: the host counts groups by it.

#include <cstdint>

namespace bitnet::kernels {

inline constexpr uint32_t rows_of_dots = 4, tokens_of_dots = 4;

}  // namespace bitnet::kernels
