#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
WORDS_IN(1, x);
WORDS(2, y);
layout(push_constant) uniform params {
  uint rows, k, m, part, first, inner, inner_stride, outer_stride;
};

void main() {
  for (uint r = gl_WorkGroupID.y; r < header[rows]; r += gl_NumWorkGroups.y) {
    for (uint i = gl_GlobalInvocationID.x; i < m; i += gl_NumWorkGroups.x * threads()) {
      uint n = i / part;
      uint at = first + n / inner * outer_stride + n % inner * inner_stride + i % part;
      y[r * m + i] = x[r * k + at];
    }
  }
}
