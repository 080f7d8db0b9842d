#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(constant_id = 1) const uint OP = 11;
layout(constant_id = 2) const uint NORM = 0;
WORDS_IN(1, gate);
WORDS_IN(2, up);
WORDS_IN(3, weight);
layout(std430, set = 0, binding = 4) coherent buffer scratch_buffer { uint scratch[]; };
WORDS(5, q);
WORDS(6, s);
layout(push_constant) uniform params {
  uint rows, k;
  float eps;
};
#include "activation.glsl"
#include "reduce.glsl"
#include "row_ops.glsl"
shared float norm_sums[gl_WorkGroupSize.x], norm_rests[gl_WorkGroupSize.x];
uint row_at;
#define X(i) f32(scratch[row_at + (i)])
DEFINE_NORM_FACTOR

float final(uint i, float factor) {
  return NORM != 0 ? normed(X(i), factor, f32(weight[i])) : X(i);
}

void main() {
  for (uint r = gl_WorkGroupID.y; r < header[rows]; r += gl_NumWorkGroups.y) {
    row_at = r * k;
    for (uint i = thread(); i < k; i += threads()) {
      precise float g = activation(OP, f32(gate[row_at + i]));
      g = g * f32(up[row_at + i]);
      scratch[row_at + i] = bits(g);
    }
    memoryBarrierBuffer();
    barrier();
    float factor = 1.0;
    if (NORM != 0) factor = norm_factor(k, eps);
    float largest = 0.0;
    for (uint i = thread(); i < k; i += threads()) {
      float a = abs(final(i, factor));
      largest = a > largest ? a : largest;
    }
    float scale = act_scale(group_max(largest));
    if (thread() == 0) s[r] = bits(scale);
    uint stride = i8_stride(k);
    for (uint w = thread(); w < stride; w += threads()) {
      uint word = 0;
      for (uint b = 0; b < 4; ++b)
        if (4 * w + b < k) word |= quantised(final(4 * w + b, factor), scale) << (8 * b);
      q[r * stride + w] = word;
    }
  }
}
