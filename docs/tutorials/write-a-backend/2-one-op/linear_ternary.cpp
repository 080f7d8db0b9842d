// SPDX-License-Identifier: Apache-2.0
#include "linear_ternary.hpp"

namespace sketch {

void linear_ternary(const bitnet::sdk::call& c, const bitnet::sdk::share& s) noexcept {
  const bool grouped = c.w->scale_group != 0;
  const uint64_t group = grouped ? c.w->scale_group : c.k;
  for (uint64_t t = 0; t < c.rows; ++t) {
    const int8_t* q = c.input<int8_t>(0) + t * c.k;
    const float act_scale = c.input<float>(1)[t];
    for (uint64_t m = s.first; m < s.last; ++m) {
      float y = 0;
      int32_t sum = 0;  // exact, whatever the order
      for (uint64_t k = 0; k < c.k; ++k) {
        sum += bitnet::sdk::ternary_at(c.w->row(m), k) * q[k];
        if ((k + 1) % group != 0) continue;
        if (grouped)
          y += static_cast<float>(sum) * c.w->scales[(m * c.k + k) / group];
        else
          y = static_cast<float>(sum) / act_scale * c.w->scales[0];
        sum = 0;
      }
      c.output<float>(0)[t * c.m + m] = grouped ? y / act_scale : y;
    }
  }
}

}  // namespace sketch
