#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(constant_id = 1) const uint LANES = 1;   // threads that share a row
layout(constant_id = 2) const uint TOKENS = 1;  // that are taken together
layout(constant_id = 3) const uint FORMAT = 1;
WORDS_IN(1, x);
WORDS_IN(2, matrix);
layout(std430, set = 0, binding = 2) readonly buffer fours_buffer { uvec4 matrix_fours[]; };
WORDS(3, y);
layout(push_constant) uniform params {
  uint rows, k, m, row_words, first_row, n_rows;
};
#include "matrix.glsl"
shared float parts[gl_WorkGroupSize.x];

// The sum over the threads that share a row; every one of them gets it.
float sum_of_lanes(float x) {
  precise float mine = x;
  if (LANES <= SUBGROUP) {
    for (uint half_ = LANES / 2; half_ != 0; half_ /= 2) mine = mine + ACROSS(mine, half_);
    return mine;
  }
  barrier();
  parts[thread()] = mine;
  barrier();
  uint lane = thread() % LANES;
  for (uint half_ = LANES / 2; half_ != 0; half_ /= 2) {
    if (lane < half_) {
      mine = mine + parts[thread() + half_];
      parts[thread()] = mine;
    }
    barrier();
  }
  return parts[thread() - lane];
}

// Sums of the row at word `at` for TOKENS tokens from `t0` on. Places after the last token repeat
// it, and are dropped.
float sums[TOKENS];
void add_product(uint t, float w, float value) {
  precise float product = w * value;
  precise float sum = sums[t] + product;
  sums[t] = sum;
}
uint x_of(uint t0, uint t, uint n) {
  return min(t0 + t, n - 1) * k;
}

void sum_halves(uint at, uint t0, uint n) {  // two elements to a load
  for (uint i = thread() % LANES; i < row_words; i += LANES) {
    uint word = matrix[at + i];
    float w0 = from_half(word & 0xffffu), w1 = from_half(word >> 16);
    [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
      uint from = x_of(t0, t, n) + 2 * i;
      add_product(t, w0, f32(x[from]));
      if (2 * i + 1 < k) add_product(t, w1, f32(x[from + 1]));
    }
  }
}

void sum_elements(uint at, uint t0, uint n) {
  for (uint i = thread() % LANES; i < k; i += LANES) {
    float w = matrix_element(FORMAT, at, i);
    [[unroll]] for (uint t = 0; t < TOKENS; ++t) add_product(t, w, f32(x[x_of(t0, t, n) + i]));
  }
}

#ifdef SUBGROUPS
// sum_halves for threads with a row each, which use the same elements of x: each fetches two of
// them, and all exchange them. For rows of whole fours of words.
void sum_together(uint at, uint t0, uint n) {
  const uint SHARED = min(SUBGROUP, 8);  // words of a row, half as many as elements
  for (uint i = 0; i < row_words; i += SHARED) {
    float low[TOKENS], high[TOKENS];
    [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
      uint from = x_of(t0, t, n) + 2 * i + thread() % SHARED;
      low[t] = f32(x[from]);
      high[t] = f32(x[from + SHARED]);
    }
    [[unroll]] for (uint u = 0; u < SHARED; u += 4) {
      uvec4 words = matrix_fours[(at + i + u) / 4];
      [[unroll]] for (uint v = 0; v < 4; ++v) {
        float w0 = from_half(words[v] & 0xffffu), w1 = from_half(words[v] >> 16);
        uint e = 2 * (u + v);
        [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
          float those = e < SHARED ? low[t] : high[t];
          add_product(t, w0, FROM(those, e % SHARED));
          add_product(t, w1, FROM(those, e % SHARED + 1));
        }
      }
    }
  }
}
#endif

void main() {
  uint lane = thread() % LANES, team = thread() / LANES, teams = threads() / LANES;
  uint n = header[rows];
  for (uint r0 = gl_WorkGroupID.x * teams; r0 < n_rows; r0 += gl_NumWorkGroups.x * teams) {
    for (uint t0 = gl_WorkGroupID.y * TOKENS; t0 < n; t0 += gl_NumWorkGroups.y * TOKENS) {
      uint r = r0 + team, at = min(r, n_rows - 1) * row_words;
      [[unroll]] for (uint t = 0; t < TOKENS; ++t) sums[t] = 0.0;
#ifdef SUBGROUPS
      if (FORMAT == FORMAT_F16 && LANES == 1 && SUBGROUP >= 4 && k % 16 == 0)
        sum_together(at, t0, n);
      else
#endif
      if (FORMAT == FORMAT_F16)
        sum_halves(at, t0, n);
      else
        sum_elements(at, t0, n);
      [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
        float sum = sum_of_lanes(sums[t]);
        if (lane == 0 && t0 + t < n && r < n_rows) y[(t0 + t) * m + first_row + r] = bits(sum);
      }
    }
  }
}
