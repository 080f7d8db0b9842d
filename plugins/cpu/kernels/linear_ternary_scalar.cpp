// The reference of linear_ternary.hpp: every other form returns the same bits.
#include "linear_ternary.hpp"

namespace bitnet::cpu {

void linear_ternary_scalar(const ternary_tile& a) {
  for (uint64_t t = 0; t < a.tokens; ++t) {
    const int8_t* q = a.q + t * a.q_stride;
    int32_t sum_q = 0;
    for (uint64_t i = 0; i < a.k; ++i) sum_q += q[i];
    for (uint64_t r = 0; r < a.rows; ++r) {
      const uint8_t* row = a.w + r * a.w_stride;
      int32_t sum = 0;
      uint64_t i = 0;
      for (; i + 128 <= a.k; i += 128, row += 32) {
        for (int p = 0; p < 32; ++p) {
          const int8_t* x = q + i + p;
          sum += (row[p] >> 6) * x[0] + (row[p] >> 4 & 3) * x[32] + (row[p] >> 2 & 3) * x[64] +
                 (row[p] & 3) * x[96];
        }
      }
      for (uint64_t tail = 0; i + tail < a.k; ++tail)
        sum += (row[tail % 32] >> (6 - 2 * (tail / 32)) & 3) * q[i + tail];
      a.sums[t * a.sums_stride + r] = sum - sum_q;
    }
  }
}

}  // namespace bitnet::cpu
