// The reference of linear_fives.hpp: every other form returns the same bits.
#include "linear_fives.hpp"

namespace bitnet::cpu {

void linear_fives_scalar(const ternary_tile& a) {
  for (uint64_t t = 0; t < a.tokens; ++t)
    for (uint64_t r = 0; r < a.rows; ++r) {
      int32_t sum = 0;
      for (uint64_t i = 0; i < a.k; ++i) {
        int code = a.w[r * a.w_stride + i / fives_line * 64 + i % 64];
        for (uint64_t plane = i % fives_line / 64; plane > 0; --plane) code /= 3;
        sum += (code % 3 - 1) * a.q[t * a.q_stride + i];
      }
      a.sums[t * a.sums_stride + r] = sum;
    }
}

bool code_fives_scalar(const fives_rows& a) {
  constexpr int powers[] = {1, 3, 9, 27, 81};
  const uint64_t lines = (a.k + fives_line - 1) / fives_line;
  bool weights = true;
  for (uint64_t r = 0; r < a.rows; ++r)
    for (uint64_t i = 0; i < lines; ++i)
      for (uint64_t j = 0; j < 64; ++j) {
        int sum = 0;
        for (uint64_t plane = 0; plane < 5; ++plane) {
          const uint64_t e = fives_line * i + 64 * plane + j;
          if (e >= a.k) break;
          const uint8_t byte = a.from[r * a.from_stride + e / 128 * 32 + e % 32];
          const int code = byte >> (6 - e % 128 / 32 * 2) & 3;
          weights = weights && code < 3;
          sum += powers[plane] * code;
        }
        a.to[(r * lines + i) * 64 + j] = static_cast<uint8_t>(sum);
      }
  return weights;
}

}  // namespace bitnet::cpu
