#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
WORDS_IN(1, x);
WORDS_IN(2, turns);
WORDS(3, y);
layout(push_constant) uniform params {
  uint rows, heads, head_dim, pairs, neox;
};

void main() {
  uint units = head_dim - pairs;  // of a head: its pairs, then the copied elements
  for (uint t = gl_WorkGroupID.y; t < header[rows]; t += gl_NumWorkGroups.y) {
    for (uint u = gl_GlobalInvocationID.x; u < heads * units;
         u += gl_NumWorkGroups.x * threads()) {
      uint at = (t * heads + u / units) * head_dim, i = u % units;
      if (i >= pairs) {
        y[at + pairs + i] = x[at + pairs + i];
        continue;
      }
      uint first = at + (neox != 0 ? i : 2 * i), second = first + (neox != 0 ? pairs : 1);
      float c = f32(turns[2 * (t * pairs + i)]), s = f32(turns[2 * (t * pairs + i) + 1]);
      precise float a = f32(x[first]), b = f32(x[second]);
      precise float p = a * c, q = b * s, v = a * s, w = b * c;
      precise float left = p - q, right = v + w;
      y[first] = bits(left);
      y[second] = bits(right);
    }
  }
}
