#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
WORDS_IN(1, x);
WORDS_IN(2, weight);
WORDS(3, y);
layout(push_constant) uniform params {
  uint rows, k;
  float eps;
  uint heads;
};
#include "row_ops.glsl"
shared float norm_sums[gl_WorkGroupSize.x], norm_rests[gl_WorkGroupSize.x];
uint row_at;
#define X(i) f32(x[row_at + (i)])
DEFINE_NORM_FACTOR

void main() {
  uint groups = gl_NumWorkGroups.x * gl_NumWorkGroups.y;
  for (uint r = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; r < header[rows] * heads;
       r += groups) {
    row_at = r * k;
    float factor = norm_factor(k, eps);
    for (uint i = thread(); i < k; i += threads())
      y[row_at + i] = bits(normed(X(i), factor, f32(weight[i])));
  }
}
