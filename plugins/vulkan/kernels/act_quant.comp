#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
WORDS_IN(1, x);
WORDS(2, q);
WORDS(3, s);
layout(push_constant) uniform params {
  uint rows, k;
};
#include "reduce.glsl"
#include "row_ops.glsl"

void main() {
  for (uint r = gl_WorkGroupID.y; r < header[rows]; r += gl_NumWorkGroups.y) {
    uint at = r * k;
    float largest = 0.0;
    for (uint i = thread(); i < k; i += threads()) {
      float a = abs(f32(x[at + i]));
      largest = a > largest ? a : largest;
    }
    float scale = act_scale(group_max(largest));
    if (thread() == 0) s[r] = bits(scale);
    uint stride = i8_stride(k);
    for (uint w = thread(); w < stride; w += threads()) {
      uint word = 0;
      for (uint b = 0; b < 4; ++b)
        if (4 * w + b < k) word |= quantised(f32(x[at + 4 * w + b]), scale) << (8 * b);
      q[r * stride + w] = word;
    }
  }
}
