#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
WORDS_IN(1, a);
WORDS_IN(2, b);
WORDS_IN(3, weight);
WORDS(4, y);
layout(push_constant) uniform params {
  uint rows, heads;
};

// log(1 + u) for u in [0, 1], within a few units in the last place: with s = u / (2 + u) it is
// 2 * (s + s^3 / 3 + s^5 / 5 ...), of which the term in s^17 is below 2^-29 of the first.
float log_of_one_and(float u) {
  precise float s = u / (2.0 + u);
  precise float q = s * s;
  precise float p = 1.0 / 15.0;
  p = p * q + 1.0 / 13.0;
  p = p * q + 1.0 / 11.0;
  p = p * q + 1.0 / 9.0;
  p = p * q + 1.0 / 7.0;
  p = p * q + 1.0 / 5.0;
  p = p * q + 1.0 / 3.0;
  precise float y = s + s * (q * p);
  return 2.0 * y;
}

void main() {
  for (uint t = gl_WorkGroupID.y; t < header[rows]; t += gl_NumWorkGroups.y) {
    for (uint h = gl_GlobalInvocationID.x; h < heads; h += gl_NumWorkGroups.x * threads()) {
      precise float z = f32(a[t * heads + h]) + f32(weight[heads + h]);
      precise float softplus = max(z, 0.0) + log_of_one_and(exponential(-abs(z)));
      precise float exponent = f32(weight[h]) * softplus;
      precise float beta = 1.0 / (1.0 + exponential(-f32(b[t * heads + h])));
      y[t * 2 * heads + h] = bits(exponential(exponent));
      y[t * 2 * heads + heads + h] = bits(beta);
    }
  }
}
