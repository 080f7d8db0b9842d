#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(constant_id = 1) const uint LANES = 1;  // threads that share a row
layout(constant_id = 2) const uint NORM = 0;
layout(constant_id = 3) const uint EACH = 4;  // rows of a thread
layout(constant_id = 4) const uint WORDS = 32;
const uint TOKENS = 1;
WORDS_IN(1, x);
WORDS_IN(2, weight);
WORDS_IN(3, matrix);
layout(std430, set = 0, binding = 3) readonly buffer fours_buffer { uvec4 matrix_fours[]; };
WORDS_IN(4, scales);
WORDS_IN(5, residual);
WORDS(6, y);
layout(push_constant) uniform params {
  uint rows, k, m, row_words, first_row, n_rows, add;
  float eps;
};
#include "reduce.glsl"
#include "row_ops.glsl"
shared float norm_sums[gl_WorkGroupSize.x], norm_rests[gl_WorkGroupSize.x];
shared uint quantised_row[WORDS];
#define Q(i) quantised_row[i]
#define Q_ROW WORDS
#include "ternary.glsl"
uint row_at;
#define X(i) f32(x[row_at + (i)])
DEFINE_NORM_FACTOR

float element(uint i, float factor) {
  return NORM != 0 ? normed(X(i), factor, f32(weight[i])) : X(i);
}

// Quantises the whole row in every group. Returns its scale.
float quantise() {
  float factor = 1.0;
  if (NORM != 0) factor = norm_factor(k, eps);
  float largest = 0.0;
  for (uint i = thread(); i < k; i += threads()) {
    float a = abs(element(i, factor));
    largest = a > largest ? a : largest;
  }
  float scale = act_scale(group_max(largest));
  barrier();  // the previous row is read
  for (uint w = thread(); w < WORDS; w += threads()) {
    uint word = 0;
    for (uint b = 0; b < 4; ++b)
      if (4 * w + b < k) word |= quantised(element(4 * w + b, factor), scale) << (8 * b);
    quantised_row[w] = word;
  }
  barrier();
  return scale;
}

void main() {
  uint lane = thread() % LANES, team = thread() / LANES, teams = threads() / LANES;
  for (uint t = gl_WorkGroupID.y; t < header[rows]; t += gl_NumWorkGroups.y) {
    row_at = t * k;
    float scale = quantise();
    for (uint r0 = gl_WorkGroupID.x * teams * EACH; r0 < n_rows;
         r0 += gl_NumWorkGroups.x * teams * EACH) {
      uint first = r0 + team * EACH;
      sum_rows(first, 0, 1);
      for (uint e = 0; e < EACH; ++e) {
        if (lane != 0 || first + e >= n_rows) continue;
        uint at = t * m + first_row + first + e;
        precise float out_ = float(sums[e]) / scale;
        out_ = out_ * f32(scales[0]);
        if (add != 0) out_ = out_ + f32(residual[at]);
        y[at] = bits(out_);
      }
    }
  }
}
