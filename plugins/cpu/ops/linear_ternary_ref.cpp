#include "ops.hpp"

namespace bitnet::cpu {

void linear_ternary_ref(const sdk::weight& w, const int8_t* q, const float* s,
                        const output_columns& columns) {
  const auto [tokens, first, last, y] = columns;
  const uint64_t group = w.scale_group == 0 ? w.k : w.scale_group;
  for (uint64_t t = 0; t < tokens; ++t) {
    for (uint64_t r = first; r < last; ++r) {
      float scaled = 0;
      int32_t sum = 0;
      for (uint64_t g = 0; g < w.k / group; ++g) {
        sum = 0;
        for (uint64_t i = g * group; i < (g + 1) * group; ++i)
          sum += sdk::ternary_at(w.row(r), i) * q[t * w.k + i];
        if (w.scale_group != 0)
          scaled += static_cast<float>(sum) * w.scales[(r * w.k + g * group) / group];
      }
      y[t * w.m + r] =
          w.scale_group == 0 ? static_cast<float>(sum) / s[t] * w.scales[0] : scaled / s[t];
    }
  }
}

}  // namespace bitnet::cpu
