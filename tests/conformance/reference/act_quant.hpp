#pragma once
// ACT_QUANT_I8 as ops.h says it, in f32: what it gives is exact.

#include <cstdint>
#include <span>
#include <vector>

namespace bitnet::conformance {

struct quantised {
  std::vector<int8_t> q;
  float scale;
};

quantised act_quant(std::span<const float> x);

}  // namespace bitnet::conformance
