#pragma once
// Whole numbers that golden programs compute with: inputs by token and column, weights by row and
// column.

#include <cstdint>

namespace bitnet::probe::golden {

constexpr uint32_t width = 384;  // of most inputs

using element = int (*)(uint32_t row, uint32_t k);

// Without a pattern: the same for the same pair.
constexpr uint32_t mixed(uint32_t row, uint32_t k) {
  uint32_t out = row * 2246822519U + k * 2654435761U;
  out = (out ^ out >> 13) * 3266489917U;
  return out >> 20;
}

inline int activation(uint32_t token, uint32_t k) {
  if (k == 13 * token) return 127;
  return static_cast<int>((token * 31 + k * 7 + k / 11) % 253) - 126;
}
// Without a pattern, so that each column has both signs among the tokens.
inline int sign(uint32_t token, uint32_t k) {
  uint32_t bits = token * 2654435761U + k * 2246822519U;
  bits = (bits ^ bits >> 15) * 3266489917U;
  return k == 0 || (bits >> 20) % 2 == 0 ? 1 : -1;
}
inline int trit(uint32_t row, uint32_t k) {
  return static_cast<int>((row * 5 + k * 3 + k / 7 + row * k / 5) % 3) - 1;
}
// Weights of a norm: 1 in every third column, 127 once.
inline int norm_weight(uint32_t, uint32_t k) {
  if (k % 3 == 0) return 1;
  return k == 1 ? 127 : static_cast<int>(k * 37 % 253) - 126;
}

template <uint32_t (*Column)(uint32_t)>
int pick(uint32_t row, uint32_t k) {
  return k == Column(row) ? 1 : 0;
}

// The result of a product.
template <element Input, element Weight, uint32_t Columns = width>
double product(uint32_t token, uint32_t row) {
  int64_t sum = 0;
  for (uint32_t k = 0; k < Columns; ++k) sum += int64_t{Input(token, k)} * Weight(row, k);
  return static_cast<double>(sum);
}

}  // namespace bitnet::probe::golden
