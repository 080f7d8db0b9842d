// Sums of products of ternary rows and int8 activations, by the threads of a group. The including
// file declares the buffer matrix, also as matrix_fours; k, row_words, n_rows; constants LANES,
// TOKENS, EACH; Q(i), word i of the activations, and Q_ROW, the number of words of a token.
shared int parts[gl_WorkGroupSize.x];

// A word of the matrix has the codes of 16 activations: four words of q that are 8 words apart, the
// first in the highest bits. A code is the weight + 1. products() takes these activations as PARTS
// words.
#ifdef DOT
const uint PARTS = 4;
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019], id = 4450)
int dot_bytes(uint a, uint b, spirv_literal int format);  // OpSDot; format 0: four to a word

// Loads activations into `a`. Returns their sum.
int take(uint at, out uint a[PARTS]) {
  int all = 0;
  [[unroll]] for (uint j = 0; j < 4; ++j) {
    a[j] = Q(at + 8 * j);
    all += dot_bytes(0x01010101u, a[j], 0);
  }
  return all;
}
int products(uint word, uint a[PARTS]) {
  int sum = 0;
  [[unroll]] for (uint j = 0; j < 4; ++j) sum += dot_bytes(word >> (6 - 2 * j) & 0x03030303u, a[j], 0);
  return sum;
}
#else
const uint PARTS = 8;
// Two products at once: with codes c0 + c1 * 2^16 and activations q1 + q0 * 2^16 (all modulo 2^32)
// the upper half of the product is c0 q0 + c1 q1, minus a borrow of the lower half that is
// corrected below. The 8 such products of a word sum up to |upper| <= 8 * 2 * 2 * 128, |lower| <= 8
// * 2 * 128, which fits 16 bits.
uint pair_of(int low, int high) {
  return uint(low) + (uint(high) << 16);
}
int take_word(uint word, out uint even, out uint odd) {
  int b0 = signed_byte(word, 0), b1 = signed_byte(word, 1);
  int b2 = signed_byte(word, 2), b3 = signed_byte(word, 3);
  even = pair_of(b2, b0);
  odd = pair_of(b3, b1);
  return b0 + b1 + b2 + b3;
}
int take(uint at, out uint a[PARTS]) {
  int all = 0;
  [[unroll]] for (uint j = 0; j < 4; ++j) all += take_word(Q(at + 8 * j), a[j], a[j + 4]);
  return all;
}
int products(uint word, uint a[PARTS]) {
  uint sum = 0;
  [[unroll]] for (uint j = 0; j < 4; ++j) {
    sum += (word >> (6 - 2 * j) & 0x00030003u) * a[j];
    sum += (word >> (14 - 2 * j) & 0x00030003u) * a[j + 4];
  }
  int lower = bitfieldExtract(int(sum), 0, 16);
  return (int(sum) - lower) >> 16;
}
#endif

// The same for quarter c of 128 elements: eight adjacent words of q, and the codes at bit 6 - 2 * c
// of eight words of the matrix. Its 16 products sum up to twice as much.
#ifdef DOT
const uint QUARTER = 8;
int take_quarter(uint at, out uint a[QUARTER]) {
  int all = 0;
  [[unroll]] for (uint i = 0; i < 8; ++i) {
    a[i] = Q(at + i);
    all += dot_bytes(0x01010101u, a[i], 0);
  }
  return all;
}
int quarter(uvec4 words[2], uint c, uint a[QUARTER]) {
  int sum = 0;
  [[unroll]] for (uint i = 0; i < 8; ++i)
    sum += dot_bytes(words[i / 4][i % 4] >> (6 - 2 * c) & 0x03030303u, a[i], 0);
  return sum;
}
#else
const uint QUARTER = 16;
int take_quarter(uint at, out uint a[QUARTER]) {
  int all = 0;
  [[unroll]] for (uint i = 0; i < 8; ++i) all += take_word(Q(at + i), a[i], a[i + 8]);
  return all;
}
int quarter(uvec4 words[2], uint c, uint a[QUARTER]) {
  uint sum = 0;
  [[unroll]] for (uint i = 0; i < 8; ++i) {
    uint codes = words[i / 4][i % 4] >> (6 - 2 * c);
    sum += (codes & 0x00030003u) * a[i];
    sum += (codes >> 8 & 0x00030003u) * a[i + 8];
  }
  int lower = bitfieldExtract(int(sum), 0, 16);
  return (int(sum) - lower) >> 16;
}
#endif

// The sum over the threads that share a row; every one of them gets it.
int sum_of_lanes(int x) {
  if (LANES <= SUBGROUP) {
    for (uint half_ = LANES / 2; half_ != 0; half_ /= 2) x += ACROSS(x, half_);
    return x;
  }
  barrier();
  parts[thread()] = x;
  barrier();
  uint lane = thread() % LANES;
  for (uint half_ = LANES / 2; half_ != 0; half_ /= 2) {
    if (lane < half_) parts[thread()] += parts[thread() + half_];
    barrier();
  }
  return parts[thread() - lane];
}

// Sums of EACH rows from `first` on, for TOKENS tokens from `t0` on. Places after the last row or
// token repeat it, and are dropped.
int sums[EACH * TOKENS];
uint row_of(uint first, uint e) {
  return min(first + e, n_rows - 1) * row_words;
}
uint q_of(uint t0, uint t, uint n) {
  return min(t0 + t, n - 1) * Q_ROW;
}

void sum_apart(uint first, uint t0, uint n) {
  uint lane = thread() % LANES;
  for (uint i = lane; i < row_words; i += LANES) {
    uint words[EACH];
    [[unroll]] for (uint e = 0; e < EACH; ++e) words[e] = matrix[row_of(first, e) + i];
    [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
      uint a[PARTS];
      int all = take(q_of(t0, t, n) + i / 8 * 32 + i % 8, a);
      [[unroll]] for (uint e = 0; e < EACH; ++e) sums[e * TOKENS + t] += products(words[e], a) - all;
    }
  }
  for (uint i = 0; i < EACH * TOKENS; ++i) sums[i] = sum_of_lanes(sums[i]);
}

#ifdef SUBGROUPS
// For threads with a row each, which use the same activations: each thread fetches another word,
// and all exchange them.
void sum_together(uint first, uint t0, uint n) {
  const uint SHARED = min(SUBGROUP, 8);
  int alls[TOKENS];
  [[unroll]] for (uint t = 0; t < TOKENS; ++t) alls[t] = 0;
  for (uint i = 0; i < row_words; i += SHARED) {
    uint mine = i + thread() % SHARED;
    uint a[TOKENS][PARTS];
    [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
      uint taken[PARTS];
      alls[t] += take(q_of(t0, t, n) + mine / 8 * 32 + mine % 8, taken);
      a[t] = taken;
    }
    [[unroll]] for (uint u = 0; u < SHARED; u += 4) {
      uvec4 words[EACH];
      [[unroll]] for (uint e = 0; e < EACH; ++e) words[e] = matrix_fours[(row_of(first, e) + i + u) / 4];
      [[unroll]] for (uint v = 0; v < 4; ++v) {
        [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
          uint theirs[PARTS];
          [[unroll]] for (uint p = 0; p < PARTS; ++p) theirs[p] = FROM(a[t][p], u + v);
          [[unroll]] for (uint e = 0; e < EACH; ++e) sums[e * TOKENS + t] += products(words[e][v], theirs);
        }
      }
    }
  }
  [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
    int all = 0;
    for (uint u = 0; u < SHARED; ++u) all += FROM(alls[t], u);
    [[unroll]] for (uint e = 0; e < EACH; ++e) sums[e * TOKENS + t] -= all;
  }
}
#endif

void sum_rows(uint first, uint t0, uint n) {
  for (uint i = 0; i < EACH * TOKENS; ++i) sums[i] = 0;
#ifdef SUBGROUPS
  if (LANES == 1 && SUBGROUP >= 4)
    sum_together(first, t0, n);
  else
#endif
    sum_apart(first, t0, n);
}
