#include "linear_i8.hpp"

namespace bitnet::cpu {

void linear_i8_scalar(const i8_tile& a) {
  for (uint64_t r = 0; r < a.rows; ++r) {
    const uint8_t* w = a.w + r * a.w_stride;
    int64_t sum = 0;
    for (uint64_t i = 0; i < a.k; ++i) sum += int64_t{w[i] - 128} * a.x[i];
    a.sums[r] = sum;
  }
}

void linear_i4_scalar(const i8_tile& a) {
  for (uint64_t r = 0; r < a.rows; ++r) {
    const uint8_t* w = a.w + r * a.w_stride;
    int64_t sum = 0;
    for (uint64_t i = 0; i < a.k; ++i) {
      const int pair = w[i / 128 * 64 + i % 64];
      sum += int64_t{(i % 128 < 64 ? pair & 15 : pair >> 4) - 8} * a.x[i];
    }
    a.sums[r] = sum;
  }
}

}  // namespace bitnet::cpu
