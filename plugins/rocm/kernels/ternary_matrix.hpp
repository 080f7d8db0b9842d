#pragma once
// The tile of a wave of ternary_matrix.cu, from which the host computes the number of groups.

#include <cstdint>

namespace bitnet::kernels {

inline constexpr uint32_t matrix_tile = 16;  // rows and tokens that one product has

// A lane of 32 has twice as many sums of a tile as one of 64 has.
struct matrix_form {
  uint32_t rows, tokens;  // of the matrix, of the step
};
constexpr matrix_form matrix_few(uint32_t) noexcept {
  return {matrix_tile, matrix_tile};
}
constexpr matrix_form matrix_many(uint32_t lanes) noexcept {
  return {lanes, 2 * matrix_tile};
}
constexpr matrix_form matrix_factored(uint32_t lanes) noexcept {
  return {lanes / 2, matrix_tile};
}

}  // namespace bitnet::kernels
