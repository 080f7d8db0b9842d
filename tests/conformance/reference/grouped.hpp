#pragma once
// ACT_QUANT_I8_GROUPED as ops.h says it, in f32: what it gives is exact.

#include <cstdint>
#include <span>
#include <vector>

namespace bitnet::conformance {

struct grouped_codes {
  std::vector<int8_t> q;
  std::vector<float> factors;  // of each group
};

grouped_codes act_quant_grouped(std::span<const float> x, uint64_t group);

}  // namespace bitnet::conformance
