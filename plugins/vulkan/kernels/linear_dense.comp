#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(constant_id = 1) const uint LANES = 1;   // threads that share a row
layout(constant_id = 2) const uint TOKENS = 1;  // that are taken together
layout(constant_id = 3) const uint FORMAT = 1;
WORDS_IN(1, x);
WORDS_IN(2, matrix);
WORDS(3, y);
layout(push_constant) uniform params {
  uint rows, k, m, row_words, first_row, n_rows;
};
#include "matrix.glsl"
shared float parts[gl_WorkGroupSize.x];

void main() {
  uint lane = thread() % LANES, team = thread() / LANES, teams = threads() / LANES;
  uint n = header[rows];
  for (uint r0 = gl_WorkGroupID.x * teams; r0 < n_rows; r0 += gl_NumWorkGroups.x * teams) {
    for (uint t0 = gl_WorkGroupID.y * TOKENS; t0 < n; t0 += gl_NumWorkGroups.y * TOKENS) {
      uint r = r0 + team, tokens = min(TOKENS, n - t0);
      uint at = min(r, n_rows - 1) * row_words;
      float sums[TOKENS];
      for (uint t = 0; t < TOKENS; ++t) sums[t] = 0.0;
      if (FORMAT == FORMAT_F16) {  // two elements to a load
        for (uint i = lane; i < row_words; i += LANES) {
          uint word = matrix[at + i];
          float w0 = from_half(word & 0xffffu), w1 = from_half(word >> 16);
          for (uint t = 0; t < tokens; ++t) {
            uint from = (t0 + t) * k + 2 * i;
            precise float p0 = w0 * f32(x[from]);
            precise float sum = sums[t] + p0;
            if (2 * i + 1 < k) {
              precise float p1 = w1 * f32(x[from + 1]);
              sum = sum + p1;
            }
            sums[t] = sum;
          }
        }
      } else {
        for (uint i = lane; i < k; i += LANES) {
          float w = matrix_element(FORMAT, at, i);
          for (uint t = 0; t < tokens; ++t) {
            precise float product = w * f32(x[(t0 + t) * k + i]);
            precise float sum = sums[t] + product;
            sums[t] = sum;
          }
        }
      }
      for (uint t = 0; t < TOKENS; ++t) {
        float sum = sums[t];
        if (LANES > 1) {
          barrier();
          parts[thread()] = sum;
          barrier();
          for (uint half_ = LANES / 2; half_ != 0; half_ /= 2) {
            if (lane < half_) {
              precise float both = parts[thread()] + parts[thread() + half_];
              parts[thread()] = both;
            }
            barrier();
          }
          sum = parts[thread() - lane];
        }
        if (lane == 0 && t < tokens && r < n_rows) y[(t0 + t) * m + first_row + r] = bits(sum);
      }
    }
  }
}
