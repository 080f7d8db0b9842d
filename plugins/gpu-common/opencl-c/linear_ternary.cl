// C1: threads that share a row of the matrix; C2: tokens that a group takes together; C3: rows that
// a thread takes, one after the other; C4: activations to a factor, or 0.
#include "common.cl"
#include "group.cl"
#define Q_SPACE __global
#define TOKENS C2
#include "ternary.cl"

typedef struct {
  uint rows, k, m, row_words, first_row, n_rows, scale_group, add;
} params;

#define ROWS (T / C1 * C3)

// The sum over scale groups of (f32)(their sum) * their scale, ascending.
static float scaled(__global const uint *row, __global const uint *q, __global const float *scales,
                   uint k, uint scale_group) {
  float out = 0;
  int sum = 0;
  uint in_group = 0;
  for (uint i = 0; i < k; i += 4) {
    const uint at = i / 4;  // word of q; its elements are one word of the matrix apart
    const uint codes = row[at / 32 * 8 + at % 8] >> (6 - 2 * (at % 32 / 8)) & 0x03030303u;
    const int4 t = convert_int4(as_char4(codes)) - 1;
    const int4 products = t * convert_int4(as_char4(q[at]));
    sum += products.x + products.y + products.z + products.w;
    in_group += 4;
    if (in_group == scale_group) {
      out += (float)sum * *scales++;
      sum = 0;
      in_group = 0;
    }
  }
  return out;
}

#if C4
// y of C2 tokens: `in` are the factors of the shorter groups, of `in_length` elements, `out` those
// of the longer ones. Sixteen lanes run beside each other; a shorter group has 128 elements at most,
// which is 8 products to a lane.
static void factored(__global const uint *row, __global const uint *const *q, uint k,
              __global const float *const *in, uint in_length, __global const float *const *out,
              uint out_length, float *sums) {
  short16 lanes[C2];
  float inner[C2];
  for (uint j = 0; j < C2; ++j) {
    lanes[j] = (short16)(0);
    inner[j] = sums[j] = 0;
  }
  uint in_end = in_length, out_end = out_length, in_group = 0, out_group = 0;
  for (uint end = 32; end <= k; end += 32) {
    const uint at = (end - 1) / 128, quarter = (end - 1) % 128 / 32;
    for (uint side = 0; side < 2; ++side) {
      const uchar16 codes = as_uchar16(vload4(side, row + 8 * at));
      const short16 t =
          convert_short16((codes >> (uchar16)(6 - 2 * quarter)) & (uchar16)3) - (short16)1;
      for (uint j = 0; j < C2; ++j)
        lanes[j] += t * convert_short16(as_char16(vload4(2 * quarter + side, q[j] + 32 * at)));
    }
    if (end != in_end) continue;
    for (uint j = 0; j < C2; ++j) {
      const short8 a = lanes[j].lo + lanes[j].hi;
      const int4 b = convert_int4(a.lo) + convert_int4(a.hi);
      inner[j] += (float)(b.x + b.y + b.z + b.w) * in[j][in_group];
      lanes[j] = (short16)(0);
    }
    in_end += in_length;
    ++in_group;
    if (end != out_end) continue;
    for (uint j = 0; j < C2; ++j) {
      sums[j] += inner[j] * out[j][out_group];
      inner[j] = 0;
    }
    out_end += out_length;
    ++out_group;
  }
}
#endif

KERNEL(BIND(const uint, header), BIND(const uint, q), BIND(const float, s), BIND(const uint, matrix),
       BIND(const float, scales), BIND(const float, residual), BIND(float, y),
       const params p) {
  OPEN(const uint, header);
  OPEN(const uint, q);
  OPEN(const float, s);
  OPEN(const uint, matrix);
  OPEN(const float, scales);
  OPEN(const float, residual);
  OPEN(float, y);
#if C1 > 1
  __local int shared[T * C2];
#endif
  const uint rows = header[p.rows], stride = i8_stride(p.k);
  const uint part = LOCAL_ID % C1;
  EACH_GROUP(unit, (p.n_rows + ROWS - 1) / ROWS * C3) {
    const uint r = unit / C3 * ROWS + unit % C3 * (T / C1) + LOCAL_ID / C1;
    // Threads past the end work on the last row, since all have to meet, and store nothing.
    __global const uint *row = matrix + (ulong)min(r, p.n_rows - 1) * p.row_words;
    const uint column = p.first_row + min(r, p.n_rows - 1);
    for (uint first = (uint)get_group_id(1) * C2; first < rows;
         first += (uint)get_num_groups(1) * C2) {
      __global const uint *of_token[C2];
      for (uint j = 0; j < C2; ++j) of_token[j] = q + (ulong)min(first + j, rows - 1) * stride;
#if C4
      const uint own = p.scale_group == 0 ? p.k : p.scale_group;
      __global const float *given[C2], *scale[C2];
      for (uint j = 0; j < C2; ++j) {
        given[j] = s + (ulong)min(first + j, rows - 1) * (p.k / C4);
        scale[j] = scales + (p.scale_group == 0 ? 0 : (ulong)column * (p.k / own));
      }
      float sums[C2];
      if (C4 <= own)
        factored(row, of_token, p.k, given, C4, scale, own, sums);
      else
        factored(row, of_token, p.k, scale, own, given, C4, sums);
#else
      int sums[C2];
      if (p.scale_group == 0) {
        dot_rows(row, of_token, stride / 32, part, sums);
#if C1 > 1
        sum_of_lanes(sums, shared);
#endif
      }
#endif
      if (part != 0 || r >= p.n_rows) continue;
      for (uint j = 0; j < C2 && first + j < rows; ++j) {
        const uint t = first + j;
        float value;
#if C4
        value = sums[j];
#else
        if (p.scale_group == 0)
          value = divide((float)sums[j], s[t]) * scales[0];
        else
          value = divide(scaled(row, of_token[j],
                                      scales + (ulong)column * (p.k / p.scale_group), p.k,
                                      p.scale_group),
                         s[t]);
#endif
        const ulong at = (ulong)t * p.m + column;
        if (p.add) value += residual[at];
        y[at] = value;
      }
    }
  }
}
