// The bits of [rms_norm], act_quant, linear_ternary, [add]. C1: threads that share a row of the matrix;
// C2: 1 = with rms_norm; C3: rows that a thread takes, one after the other; C4: words that a row of q has
// room in.
#include "common.cl"
#include "group.cl"
#define Q_SPACE __local
#define TOKENS 1
#include "ternary.cl"

typedef struct {
  uint rows, k, m, row_words, first_row, n_rows, add;
  float eps;
} params;

#define ROWS (T / C1 * C3)

KERNEL(BIND(const uint, header), BIND(const float, x), BIND(const float, weight),
       BIND(const uint, matrix), BIND(const float, scales), BIND(const float, residual),
       BIND(float, y), const params p) {
  OPEN(const uint, header);
  OPEN(const float, x);
  OPEN(const float, weight);
  OPEN(const uint, matrix);
  OPEN(const float, scales);
  OPEN(const float, residual);
  OPEN(float, y);
  __local EXACT_SUM norm_sums[T];
  __local float shared[T];
  __local uint q[C4];
  __local float s[1];
#if C1 > 1
  __local int parts[T];
#endif
  const uint part = LOCAL_ID % C1;
  EACH_Y(t, header[p.rows]) {
    __global const float *in = x + (ulong)t * p.k;
    float largest = 0;
#if C2
    const float factor = norm_factor(in, p.k, p.eps, norm_sums);
#define VALUE(i) (in[i] * factor * weight[i])
#else
#define VALUE(i) in[i]
#endif
    for (uint i = LOCAL_ID; i < p.k; i += T) largest = larger(largest, fabs(VALUE(i)));
    QUANTISE_ROW(VALUE, largest, p.k, q, s, shared)
#undef VALUE
    MEET;
    const float scale = *s;
    EACH_GROUP(unit, (p.n_rows + ROWS - 1) / ROWS * C3) {
      const uint r = unit / C3 * ROWS + unit % C3 * (T / C1) + LOCAL_ID / C1;
      // Threads past the end work on the last row, since all have to meet, and store nothing.
      __global const uint *row = matrix + (ulong)min(r, p.n_rows - 1) * p.row_words;
      __local const uint *of_token[1];
      of_token[0] = q;
      int sum[1];
      dot_rows(row, of_token, i8_stride(p.k) / 32, part, sum);
#if C1 > 1
      sum_of_lanes(sum, parts);
#endif
      if (part != 0 || r >= p.n_rows) continue;
      const ulong at = (ulong)t * p.m + p.first_row + r;
      float value = divide((float)sum[0], scale) * scales[0];
      if (p.add) value += residual[at];
      y[at] = value;
    }
    MEET;
  }
}
