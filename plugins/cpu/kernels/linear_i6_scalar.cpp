// The reference of linear_i6.hpp: every other form returns the same bits.
#include "linear_i6.hpp"

namespace bitnet::cpu {
namespace {

// The code of element i of 256, from 0 to 63.
int code(const uint8_t* w, uint64_t i) {
  if (i < 192) return w[i] & 63;
  const uint64_t j = i - 192;
  return w[j] >> 6 | w[64 + j] >> 6 << 2 | w[128 + j] >> 6 << 4;
}

}  // namespace

void linear_i6_scalar(const i6_tile& a) {
  for (uint64_t r = 0; r < a.rows; ++r) {
    const bool paired = (r ^ 1) < a.rows;
    const uint64_t step = paired ? 2 * i6_block_bytes : i6_block_bytes;
    const uint8_t* w = a.w + r / 2 * 2 * (a.k / i6_block * i6_block_bytes) + r % 2 * i6_block_bytes;
    for (uint64_t o = 0; o < a.outputs; ++o) {
      const int8_t *high = a.high + o * a.x_stride, *low = a.low + o * a.x_stride;
      int64_t sum = 0;
      for (uint64_t i = 0; i < a.k; ++i) {
        const int64_t q = code(w + i / i6_block * step, i % i6_block) - 32;
        sum += a.multipliers[r * i6_groups + i / 4 % i6_groups] * q * (128 * high[i] + low[i]);
      }
      a.sums[o * a.sums_stride + r] = sum;
    }
  }
}

}  // namespace bitnet::cpu
