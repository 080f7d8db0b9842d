#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(constant_id = 1) const uint OP = 9;
WORDS_IN(1, a);
WORDS_IN(2, b);
WORDS(3, y);
layout(push_constant) uniform params {
  uint rows, k;
  float factor;
};
#include "activation.glsl"

void main() {
  for (uint r = gl_WorkGroupID.y; r < header[rows]; r += gl_NumWorkGroups.y) {
    for (uint i = gl_GlobalInvocationID.x; i < k; i += gl_NumWorkGroups.x * threads()) {
      precise float value = f32(a[r * k + i]);
      if (OP == OP_ADD)
        value = value + f32(b[r * k + i]);
      else if (OP == OP_MUL)
        value = value * f32(b[r * k + i]);
      else if (OP == OP_SCALE)
        value = value * factor;
      else
        value = activation(OP, value);
      y[r * k + i] = bits(value);
    }
  }
}
