// C1: threads that share a row of the matrix; C2: tokens that a group takes together; C3: rows that
// a thread takes, one after the other.
typedef struct {
  uint rows, k, m, row_words, first_row, n_rows, scale_group, add;
} params;

#define ROWS (T / C1 * C3)

// The sum over scale groups of (f32)(their sum) * their scale, ascending.
float scaled(__global const uint *row, __global const uint *q, __global const float *scales,
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
      int sums[C2];
      if (p.scale_group == 0) {
        dot_rows(row, of_token, stride / 32, part, sums);
#if C1 > 1
        sum_of_lanes(sums, shared);
#endif
      }
      if (part != 0 || r >= p.n_rows) continue;
      for (uint j = 0; j < C2 && first + j < rows; ++j) {
        const uint t = first + j;
        float value;
        if (p.scale_group == 0)
          value = divide((float)sums[j], s[t]) * scales[0];
        else
          value = divide(scaled(row, of_token[j],
                                      scales + (ulong)column * (p.k / p.scale_group), p.k,
                                      p.scale_group),
                         s[t]);
        const ulong at = (ulong)t * p.m + column;
        if (p.add) value += residual[at];
        y[at] = value;
      }
    }
  }
}
