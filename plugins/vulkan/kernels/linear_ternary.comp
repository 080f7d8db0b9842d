#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(constant_id = 1) const uint LANES = 1;   // threads that share a row
layout(constant_id = 2) const uint TOKENS = 1;  // that are taken together
layout(constant_id = 3) const uint EACH = 4;    // rows of a thread
WORDS_IN(1, q);
WORDS_IN(2, s);
WORDS_IN(3, matrix);
WORDS_IN(4, scales);
WORDS_IN(5, residual);
WORDS(6, y);
layout(push_constant) uniform params {
  uint rows, k, m, row_words, first_row, n_rows, scale_group, add;
};
shared int parts[gl_WorkGroupSize.x];

// Two products at once: with codes c0 + c1 * 2^16 and activations q1 + q0 * 2^16 (all modulo 2^32)
// the upper half of the product is c0 q0 + c1 q1, plus a borrow from the lower half that is taken
// back below. A word's 8 such products sum up to |upper| <= 8 * 2 * 2 * 128, |lower| <= 8 * 2 * 128,
// which fits 16 bits.
uint pair_of(int low, int high) {
  return uint(low) + (uint(high) << 16);
}
int upper(uint sum) {
  int lower = bitfieldExtract(int(sum), 0, 16);
  return (int(sum) - lower) >> 16;
}

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
  for (uint b = 0; b < 4; ++b) sum += (int(codes >> (8 * b) & 3u) - 1) * signed_byte(a, b);
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

void main() {
  uint lane = thread() % LANES, team = thread() / LANES, teams = threads() / LANES;
  uint n = header[rows], stride = i8_stride(k);
  for (uint r0 = gl_WorkGroupID.x * teams * EACH; r0 < n_rows;
       r0 += gl_NumWorkGroups.x * teams * EACH) {
    for (uint t0 = gl_WorkGroupID.y * TOKENS; t0 < n; t0 += gl_NumWorkGroups.y * TOKENS) {
      uint first = r0 + team * EACH;
      if (scale_group != 0) {
        for (uint t = t0; t < min(n, t0 + TOKENS); ++t)
          for (uint r = first; r < min(n_rows, first + EACH); ++r) scaled_groups(t, r);
        continue;
      }
      int sums[EACH * TOKENS];
      for (uint i = 0; i < EACH * TOKENS; ++i) sums[i] = 0;
      uint tokens = min(TOKENS, n - t0);
      for (uint i = lane; i < row_words; i += LANES) {
        uint a = i / 8 * 32 + i % 8;  // the activations of the word's upper bits
        uint words[EACH];
        for (uint e = 0; e < EACH; ++e) {
          // Rows past the last are computed from the last, and dropped.
          uint r = min(first + e, n_rows - 1);
          words[e] = matrix[r * row_words + i];
        }
        for (uint t = 0; t < TOKENS; ++t) {
          if (t >= tokens) break;
          uint even[4], odd[4];
          int all = 0;
          for (uint j = 0; j < 4; ++j) {
            uint four_ = q[(t0 + t) * stride + a + 8 * j];
            int b0 = signed_byte(four_, 0), b1 = signed_byte(four_, 1);
            int b2 = signed_byte(four_, 2), b3 = signed_byte(four_, 3);
            even[j] = pair_of(b2, b0);
            odd[j] = pair_of(b3, b1);
            all += b0 + b1 + b2 + b3;
          }
          for (uint e = 0; e < EACH; ++e) {
            uint word = words[e], sum = 0;
            [[unroll]] for (uint j = 0; j < 4; ++j) {
              sum += (word >> (6 - 2 * j) & 0x00030003u) * even[j];
              sum += (word >> (14 - 2 * j) & 0x00030003u) * odd[j];
            }
            sums[e * TOKENS + t] += upper(sum) - all;  // a code is t + 1
          }
        }
      }
      for (uint e = 0; e < EACH; ++e) {
        for (uint t = 0; t < TOKENS; ++t) {
          int sum = sums[e * TOKENS + t];
          if (LANES > 1) {
            barrier();
            parts[thread()] = sum;
            barrier();
            for (uint half_ = LANES / 2; half_ != 0; half_ /= 2) {
              if (lane < half_) parts[thread()] += parts[thread() + half_];
              barrier();
            }
            sum = parts[thread() - lane];
          }
          if (lane == 0 && t < tokens && first + e < n_rows) {
            precise float out_ = float(sum) / f32(s[t0 + t]);
            out_ = out_ * f32(scales[0]);
            finish(t0 + t, first + e, out_);
          }
        }
      }
    }
  }
}
