#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
WORDS_IN(1, x);
WORDS(2, q);
WORDS(3, d);
layout(push_constant) uniform params {
  uint rows, k, group;
};
#include "row_ops.glsl"

// Quantises the group from element x_at on into the words from q_at on. Returns its factor.
float quantise(uint x_at, uint q_at) {
  float largest = 1e-30;
  for (uint i = 0; i < group; ++i) {
    float a = abs(f32(x[x_at + i]));
    largest = a > largest ? a : largest;
  }
  float scale = exact_quotient(127.0, largest);
  for (uint w = 0; w < group / 4; ++w) {
    uint word = 0;
    // Not [[unroll]]ed: SPIRV-Tools 2023.1 drops `precise` from the copies that it makes.
    for (uint b = 0; b < 4; ++b)
      word |= quantised(f32(x[x_at + 4 * w + b]), scale) << (8 * b);
    q[q_at + w] = word;
  }
  return exact_quotient(largest, 127.0);
}

void main() {
  uint stride = i8_stride(k), groups = k / group;
  for (uint r = gl_WorkGroupID.y; r < header[rows]; r += gl_NumWorkGroups.y) {
    for (uint g = gl_WorkGroupID.x * threads() + thread(); g < 4 * stride / group;
         g += gl_NumWorkGroups.x * threads()) {
      uint q_at = r * stride + g * group / 4;
      if (g < groups)
        d[r * groups + g] = bits(quantise(r * k + g * group, q_at));
      else
        for (uint w = 0; w < group / 4; ++w) q[q_at + w] = 0;  // padding
    }
  }
}
