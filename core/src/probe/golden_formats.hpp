#pragma once
// Whole numbers as the bytes of weights in each format.

#include <cstdint>
#include <string>

#include "probe/golden_numbers.hpp"

namespace bitnet::probe::golden {

// Rows of these numbers, each times `unit` in f32. Ternary formats hold -1, 0 and 1, f16 and bf16
// small numbers, which need no more than their mantissa.
std::string bytes_of(uint32_t format, uint32_t columns, uint32_t rows, element at, float unit = 1);

}  // namespace bitnet::probe::golden
