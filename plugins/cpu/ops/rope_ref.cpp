#include <cmath>
#include <cstring>

#include "ops.hpp"

namespace bitnet::cpu {

// Angles in double: position times frequency needs more than f32 beyond a few thousand tokens.
void rope_row(const float* x, int32_t position, const sdk::call& a, float* y) {
  const int32_t heads = a.ints[0], head_dim = a.ints[1], turned = a.ints[2];
  const bool neox = a.ints[3] == BITNET_ROPE_NEOX;
  std::memcpy(y, x, sizeof(float) * static_cast<uint64_t>(heads) * static_cast<uint64_t>(head_dim));
  for (int32_t i = 0; i < turned / 2; ++i) {
    double angle = position * static_cast<double>(a.floats[1]) *
                   std::pow(static_cast<double>(a.floats[0]), -2.0 * i / turned);
    if (a.w) angle /= static_cast<double>(a.w->f32()[i]);
    const auto c = static_cast<float>(std::cos(angle)), s = static_cast<float>(std::sin(angle));
    const int32_t first = neox ? i : 2 * i, second = neox ? i + turned / 2 : 2 * i + 1;
    for (int32_t h = 0; h < heads; ++h) {
      const float* in = x + static_cast<int64_t>(h) * head_dim;
      float* out = y + static_cast<int64_t>(h) * head_dim;
      out[first] = in[first] * c - in[second] * s;
      out[second] = in[first] * s + in[second] * c;
    }
  }
}

}  // namespace bitnet::cpu
