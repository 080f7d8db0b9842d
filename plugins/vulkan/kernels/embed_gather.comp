#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(constant_id = 1) const uint FORMAT = 1;
WORDS_IN(1, tokens);
WORDS_IN(2, matrix);
WORDS_IN(3, scales);
WORDS(4, y);
layout(push_constant) uniform params {
  uint rows, k, row_words, first_row, n_rows, scale_group;
};
#include "matrix.glsl"

void main() {
  for (uint t = gl_WorkGroupID.y; t < header[rows]; t += gl_NumWorkGroups.y) {
    uint token = tokens[t];
    if (token < first_row || token - first_row >= n_rows) continue;
    uint at = (token - first_row) * row_words;
    for (uint i = gl_GlobalInvocationID.x; i < k; i += gl_NumWorkGroups.x * threads()) {
      precise float value = matrix_element(FORMAT, at, i);
      if (FORMAT == FORMAT_TERNARY2) {
        // In two steps: token * k may not fit 32 bits, but k is a whole number of groups.
        uint group = scale_group == 0 ? 0 : token * (k / scale_group) + i / scale_group;
        value = value * f32(scales[group]);
      }
      y[t * k + i] = bits(value);
    }
  }
}
