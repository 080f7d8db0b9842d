// SPDX-License-Identifier: Apache-2.0
#include "around.hpp"

#include <algorithm>
#include <cmath>

namespace sketch {

using bitnet::sdk::call;
using bitnet::sdk::share;

void embed_gather(const call& c, const share& s) noexcept {
  for (uint64_t t = s.first; t < s.last; ++t) {
    const auto token = static_cast<uint64_t>(c.step->tokens[t]);
    float* y = c.output<float>(0) + t * c.m;
    bitnet::sdk::decode(c.w->format, c.w->row(token), 0, c.m, y);
    if (c.w->format != BITNET_FORMAT_TERNARY2) continue;
    for (uint64_t k = 0; k < c.m; ++k)
      y[k] *= c.w->scales[c.w->scale_group == 0 ? 0 : (token * c.m + k) / c.w->scale_group];
  }
}

void act_quant_i8(const call& c, const share& s) noexcept {
  for (uint64_t r = s.first; r < s.last; ++r) {
    const float* x = c.input<float>(0) + r * c.k;
    float largest = 0;
    for (uint64_t k = 0; k < c.k; ++k) largest = std::max(largest, std::fabs(x[k]));
    const float scale = 127.0f / std::max(largest, 1e-5f);
    for (uint64_t k = 0; k < c.k; ++k) {
      const float q = std::nearbyint(x[k] * scale);  // half to even
      // NaN becomes -128, as a conversion of NaN would be undefined.
      c.output<int8_t>(0)[r * c.k + k] =
          static_cast<int8_t>(std::min(std::max(-128.0f, q), 127.0f));
    }
    c.output<float>(1)[r] = scale;
  }
}

void gather_rows(const call& c, const share& s) noexcept {
  for (uint64_t o = s.first; o < s.last; ++o)
    std::copy_n(c.input<float>(0) + static_cast<uint64_t>(c.step->output_rows[o]) * c.k, c.k,
                c.output<float>(0) + o * c.k);
}

}  // namespace sketch
