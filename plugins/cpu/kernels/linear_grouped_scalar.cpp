#include "linear_grouped.hpp"

namespace bitnet::cpu {

void linear_grouped_scalar(const grouped_tile& a) {
  for (uint64_t t = 0; t < a.tokens; ++t) {
    for (uint64_t r = 0; r < a.rows; ++r) {
      const uint8_t* row = a.w + r * a.w_stride;
      const int8_t* q = a.q + t * a.q_stride;
      float& y = a.y[t * a.y_stride + r];
      if (!a.goes_on) y = 0;
      for (uint64_t g = 0; g < a.groups; ++g) {
        int32_t sum = 0;
        // 32 elements are one pair of bits of 32 bytes.
        for (uint64_t at = g * a.group; at < (g + 1) * a.group; at += 32, q += 32) {
          const uint8_t* bytes = row + at / 128 * 32;
          const uint64_t shift = 6 - 2 * (at / 32 % 4);
          for (uint64_t i = 0; i < 32; ++i) sum += ((bytes[i] >> shift & 3) - 1) * q[i];
        }
        y += static_cast<float>(sum) * a.scales[r * a.scales_stride + g];
      }
    }
  }
}

}  // namespace bitnet::cpu
