// Sums of products of ternary rows and int8 activations, by the threads of a group. The kernel
// defines constants LANES, TOKENS and EACH, matrix_in, p.row_words, p.n_rows, q_word(i), word i of
// the activations, and q_row(), the number of words of a token.
//
// A word of the matrix has the codes of 16 activations: four words of q that are 8 words apart, the
// first in the highest bits. A code is the weight + 1.
const SUMS = EACH * TOKENS;
var<private> sums: array<i32, SUMS>;
var<workgroup> parts: array<i32, T>;

fn row_of(first: u32, e: u32) -> u32 {
  return min(first + e, p.n_rows - 1u) * p.row_words;
}
fn q_of(t0: u32, t: u32, n: u32) -> u32 {
  return min(t0 + t, n - 1u) * q_row();
}

// The sum over the threads that share a row; every one of them gets it.
fn sum_of_lanes(x: i32) -> i32 {
  if (LANES == 1u) { return x; }
  workgroupBarrier();
  parts[thread] = x;
  workgroupBarrier();
  let lane = thread % LANES;
  for (var d = LANES / 2u; d != 0u; d /= 2u) {
    if (lane < d) { parts[thread] += parts[thread + d]; }
    workgroupBarrier();
  }
  return parts[thread - lane];
}

// Sums of EACH rows from `first` on, for TOKENS tokens from `t0` on. Places after the last row or
// token repeat it, and are dropped.
fn sum_rows(first: u32, t0: u32, n: u32) {
  for (var i = 0u; i < SUMS; i += 1u) { sums[i] = 0; }
  for (var i = thread % LANES; i < p.row_words; i += LANES) {
    for (var t = 0u; t < TOKENS; t += 1u) {
      let at = q_of(t0, t, n) + i / 8u * 32u + i % 8u;
      let a = vec4<u32>(q_word(at), q_word(at + 8u), q_word(at + 16u), q_word(at + 24u));
      let all = dot_bytes(0x01010101u, a.x) + dot_bytes(0x01010101u, a.y) +
                dot_bytes(0x01010101u, a.z) + dot_bytes(0x01010101u, a.w);
      for (var e = 0u; e < EACH; e += 1u) {
        let word = matrix_in[row_of(first, e) + i];
        sums[e * TOKENS + t] += dot_bytes((word >> 6u) & 0x03030303u, a.x) +
                                dot_bytes((word >> 4u) & 0x03030303u, a.y) +
                                dot_bytes((word >> 2u) & 0x03030303u, a.z) +
                                dot_bytes(word & 0x03030303u, a.w) - all;
      }
    }
  }
  for (var i = 0u; i < SUMS; i += 1u) { sums[i] = sum_of_lanes(sums[i]); }
}
