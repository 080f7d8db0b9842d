#pragma once
// Whole numbers as the bytes of weights in each format.

#include <cstdint>
#include <string>

#include "probe/golden_numbers.hpp"

namespace bitnet::probe::golden {

// Numbers of formats with blocks, each the product of a factor and a small code, less a minimum in
// q4_k. Factors are powers of two or small, so that f32 holds all of them and every sum of a row.
int number_of_q8_0(uint32_t row, uint32_t k);
int number_of_q4_0(uint32_t row, uint32_t k);
int number_of_q4_k(uint32_t row, uint32_t k);
int number_of_q6_k(uint32_t row, uint32_t k);

// Rows of these numbers, each times `unit` in f32. Ternary formats hold -1, 0 and 1, f16 and bf16
// small numbers, which need no more than their mantissa. Formats with blocks
// hold the numbers of their own function above, which `at` is.
std::string bytes_of(uint32_t format, uint32_t columns, uint32_t rows, element at, float unit = 1);

}  // namespace bitnet::probe::golden
