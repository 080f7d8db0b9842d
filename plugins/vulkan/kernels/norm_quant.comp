#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
WORDS_IN(1, x);
WORDS_IN(2, weight);
WORDS(3, q);
WORDS(4, s);
layout(push_constant) uniform params {
  uint rows, k;
  float eps;
};
#include "reduce.glsl"
#include "row_ops.glsl"
shared float norm_sums[gl_WorkGroupSize.x], norm_rests[gl_WorkGroupSize.x];
uint row_at;
#define X(i) f32(x[row_at + (i)])
DEFINE_NORM_FACTOR

void main() {
  for (uint r = gl_WorkGroupID.y; r < header[rows]; r += gl_NumWorkGroups.y) {
    row_at = r * k;
    float factor = norm_factor(k, eps);
    float largest = 0.0;
    for (uint i = thread(); i < k; i += threads()) {
      float a = abs(normed(X(i), factor, f32(weight[i])));
      largest = a > largest ? a : largest;
    }
    float scale = act_scale(group_max(largest));
    if (thread() == 0) s[r] = bits(scale);
    uint stride = i8_stride(k);
    for (uint w = thread(); w < stride; w += threads()) {
      uint word = 0;
      for (uint b = 0; b < 4; ++b) {
        uint i = 4 * w + b;
        if (i < k)
          word |= quantised(normed(X(i), factor, f32(weight[i])), scale) << (8 * b);
      }
      q[r * stride + w] = word;
    }
  }
}
