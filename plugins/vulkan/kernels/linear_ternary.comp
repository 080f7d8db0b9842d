// LINEAR_TERNARY and LINEAR_TERNARY_GROUPED; linear_ternary_params in plugins/gpu-common/kernels.hpp
// defines bindings, constants and the order of sums. A work group is teams of LANES threads: a team
// takes EACH rows of the matrix, and all teams the same TOKENS tokens.
//
//   rows    | team 0: EACH | team 1: EACH | ..     r0 is the first row, `first` that of the team
//   tokens  | t0: TOKENS |
//
// main() has three cases
//   GIVEN != 0        the activations have factors: factored_groups()
//   scale_group != 0  only the weights have them: scaled_groups()
//   else              one scale for the matrix: sum_rows() of ternary.glsl
//
// out_ is named so because `out` is a word of GLSL.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(constant_id = 1) const uint LANES = 1;   // threads that share a row
layout(constant_id = 2) const uint TOKENS = 1;  // taken together
layout(constant_id = 3) const uint EACH = 4;    // rows of a thread
layout(constant_id = 4) const uint GIVEN = 0;   // activations that share a factor, or 0
WORDS_IN(1, q);
WORDS_IN(2, s);
WORDS_IN(3, matrix);
layout(std430, set = 0, binding = 3) readonly buffer fours_buffer { uvec4 matrix_fours[]; };
WORDS_IN(4, scales);
WORDS_IN(5, residual);
WORDS(6, y);
layout(push_constant) uniform params {
  uint rows, k, m, row_words, first_row, n_rows, scale_group, add;
};
#define Q(i) q[i]
#define Q_ROW i8_stride(k)
#include "ternary.glsl"

void finish(uint t, uint r, float value) {
  precise float out_ = value;
  uint at = t * m + first_row + r;
  if (add != 0) out_ = out_ + f32(residual[at]);
  y[at] = bits(out_);
}

// Four products of the activations 4i to 4i + 3.
int four(uint row, uint q_at, uint i) {
  uint codes = matrix[row + i / 32 * 8 + i % 8] >> (6 - 2 * (i % 32 / 8));
  uint a = q[q_at + i];
  int sum = 0;
  [[unroll]] for (uint b = 0; b < 4; ++b) sum += (int(codes >> (8 * b) & 3u) - 1) * signed_byte(a, b);
  return sum;
}

void scaled_groups(uint t, uint r) {
  precise float total = 0.0;
  uint groups = k / scale_group;
  for (uint g = 0; g < groups; ++g) {
    int sum = 0;
    for (uint i = g * scale_group / 4; i < (g + 1) * scale_group / 4; ++i)
      sum += four(r * row_words, t * i8_stride(k), i);
    precise float part = float(sum) * f32(scales[(first_row + r) * groups + g]);
    total = total + part;
  }
  precise float out_ = total / f32(s[t]);
  finish(t, r, out_);
}

// Factor `at` of the activations of token t; own_factor() has the scales of weights.
float given_factor(uint t, uint n, uint at) {
  return f32(s[min(t, n - 1) * (k / GIVEN) + at]);
}
float own_factor(uint r, uint at) {
  uint row = first_row + min(r, n_rows - 1);
  return f32(scales[scale_group == 0 ? 0 : row * (k / scale_group) + at]);
}

// Sums of shorter groups times their factors, and sums of those times the factors of longer ones,
// for EACH rows and TOKENS tokens as in sum_rows. Groups consist of quarters of 128 elements.
void factored_groups(uint first, uint t0, uint n) {
  uint own = scale_group == 0 ? k : scale_group;
  uint shorter = min(GIVEN, own), longer = max(GIVEN, own);
  uint in_end = shorter, out_end = longer, in_group = 0, out_group = 0;
  precise float inner[EACH * TOKENS], outer[EACH * TOKENS];
  [[unroll]] for (uint i = 0; i < EACH * TOKENS; ++i) {
    sums[i] = 0;
    inner[i] = outer[i] = 0.0;
  }
  for (uint end = 32; end <= k; end += 32) {
    uint block = (end - 1) / 128, c = (end - 1) % 128 / 32;
    uvec4 words[EACH][2];
    [[unroll]] for (uint e = 0; e < EACH; ++e) {
      uint at = row_of(first, e) / 4 + 2 * block;
      words[e][0] = matrix_fours[at];
      words[e][1] = matrix_fours[at + 1];
    }
    [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
      uint a[QUARTER];
      int all = take_quarter(q_of(t0, t, n) + (end - 32) / 4, a);
      [[unroll]] for (uint e = 0; e < EACH; ++e)
        sums[e * TOKENS + t] += quarter(words[e], c, a) - all;
    }
    if (end != in_end) continue;
    [[unroll]] for (uint i = 0; i < EACH * TOKENS; ++i) {
      uint e = i / TOKENS, t = i % TOKENS;
      float factor = GIVEN <= own ? given_factor(t0 + t, n, in_group)
                                  : own_factor(first + e, in_group);
      precise float part = float(sums[i]) * factor;
      inner[i] = inner[i] + part;
      sums[i] = 0;
    }
    in_end += shorter;
    ++in_group;
    if (end != out_end) continue;
    [[unroll]] for (uint i = 0; i < EACH * TOKENS; ++i) {
      uint e = i / TOKENS, t = i % TOKENS;
      float factor = GIVEN <= own ? own_factor(first + e, out_group)
                                  : given_factor(t0 + t, n, out_group);
      precise float part = inner[i] * factor;
      outer[i] = outer[i] + part;
      inner[i] = 0.0;
    }
    out_end += longer;
    ++out_group;
  }
  for (uint i = 0; i < EACH * TOKENS; ++i)
    if (t0 + i % TOKENS < n && first + i / TOKENS < n_rows)
      finish(t0 + i % TOKENS, first + i / TOKENS, outer[i]);
}

void main() {
  uint lane = thread() % LANES, team = thread() / LANES, teams = threads() / LANES;
  uint n = header[rows];
  for (uint r0 = gl_WorkGroupID.x * teams * EACH; r0 < n_rows;
       r0 += gl_NumWorkGroups.x * teams * EACH) {
    for (uint t0 = gl_WorkGroupID.y * TOKENS; t0 < n; t0 += gl_NumWorkGroups.y * TOKENS) {
      uint first = r0 + team * EACH;
      if (GIVEN != 0) {
        factored_groups(first, t0, n);
        continue;
      }
      if (scale_group != 0) {
        for (uint t = t0; t < min(n, t0 + TOKENS); ++t)
          for (uint r = first; r < min(n_rows, first + EACH); ++r) scaled_groups(t, r);
        continue;
      }
      sum_rows(first, t0, n);
      for (uint e = 0; e < EACH; ++e) {
        for (uint t = 0; t < TOKENS; ++t) {
          if (lane != 0 || t0 + t >= n || first + e >= n_rows) continue;
          precise float out_ = float(sums[e * TOKENS + t]) / f32(s[t0 + t]);
          out_ = out_ * f32(scales[0]);
          finish(t0 + t, first + e, out_);
        }
      }
    }
  }
}
