#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
WORDS_IN(1, output_rows);
WORDS_IN(2, x);
WORDS(3, y);
layout(push_constant) uniform params {
  uint rows, k;
};

void main() {
  for (uint r = gl_WorkGroupID.y; r < header[rows]; r += gl_NumWorkGroups.y)
    for (uint i = gl_GlobalInvocationID.x; i < k; i += gl_NumWorkGroups.x * threads())
      y[r * k + i] = x[output_rows[r] * k + i];
}
