#include "linear_grouped.hpp"

namespace bitnet::cpu {

void linear_grouped_scalar(const grouped_tile& a) {
  for (uint64_t t = 0; t < a.tokens; ++t) {
    for (uint64_t r = 0; r < a.rows; ++r) {
      const uint8_t* row = a.w + r * a.w_stride;
      const int8_t* q = a.q + t * a.q_stride;
      float& y = a.y[t * a.y_stride + r];
      if (!a.goes_on) y = 0;
      const uint64_t q_group = a.q_scales ? a.q_group : a.group;
      const uint64_t shorter = q_group < a.group ? q_group : a.group;
      const uint64_t longer = q_group < a.group ? a.group : q_group;
      float inner = 0;
      for (uint64_t g = 0; g < a.groups * a.group / shorter; ++g) {
        int32_t sum = 0;
        // 32 elements are one pair of bits of 32 bytes.
        for (uint64_t at = g * shorter; at < (g + 1) * shorter; at += 32, q += 32) {
          const uint8_t* bytes = row + at / 128 * 32;
          const uint64_t shift = 6 - 2 * (at / 32 % 4);
          for (uint64_t i = 0; i < 32; ++i) sum += ((bytes[i] >> shift & 3) - 1) * q[i];
        }
        const uint64_t at = g * shorter;
        const float* own = a.scales ? a.scales + r * a.scales_stride + at / a.group : nullptr;
        const float* given =
            a.q_scales ? a.q_scales + t * a.q_scales_stride + at / q_group : nullptr;
        if (!own || !given) {
          y += static_cast<float>(sum) * *(own ? own : given);
          continue;
        }
        inner += static_cast<float>(sum) * (q_group <= a.group ? *given : *own);
        if ((g + 1) * shorter % longer != 0) continue;
        y += inner * (q_group <= a.group ? *own : *given);
        inner = 0;
      }
    }
  }
}

}  // namespace bitnet::cpu
