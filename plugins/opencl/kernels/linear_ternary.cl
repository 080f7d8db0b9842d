// C1: threads that share a row of the matrix; C2: tokens that a group takes together; C3: rows that
// a thread takes, one after the other.
typedef struct {
  uint rows, k, m, row_words, first_row, n_rows, scale_group, add;
} params;

#define ROWS (T / C1 * C3)

// Adds t * q over this thread's part of a row to sums[j], for token j at q + j * stride.
#if C1 == 1
// One thread to a row: vectors of 16, for cores. Eight products of at most 128 go to a lane in each
// group of 128 elements, so 16 groups fit an int16.
void dot_rows(__global const uint *row, __global const uint *const *q, uint groups, uint part,
               int *sums) {
  int16 wide[C2];
  for (uint j = 0; j < C2; ++j) wide[j] = (int16)(0);
  for (uint first = 0; first < groups; first += 16) {
    short16 narrow[C2];
    for (uint j = 0; j < C2; ++j) narrow[j] = (short16)(0);
    for (uint g = first; g < min(groups, first + 16); ++g)
      for (uint side = 0; side < 2; ++side) {
        const uchar16 codes = as_uchar16(vload4(side, row + 8 * g));
#define QUARTER(c)                                                                            \
  {                                                                                           \
    const short16 t = convert_short16((codes >> (uchar16)(6 - 2 * c)) & (uchar16)3) - (short16)1; \
    for (uint j = 0; j < C2; ++j)                                                             \
      narrow[j] += t * convert_short16(as_char16(vload4(2 * c + side, q[j] + 32 * g)));       \
  }
        QUARTER(0) QUARTER(1) QUARTER(2) QUARTER(3)
#undef QUARTER
      }
    for (uint j = 0; j < C2; ++j) wide[j] += convert_int16(narrow[j]);
  }
  for (uint j = 0; j < C2; ++j) {
    const int8 a = wide[j].lo + wide[j].hi;
    const int4 b = a.lo + a.hi;
    sums[j] = b.x + b.y + b.z + b.w;
  }
}
#else
// Neighbouring threads read neighbouring words.
int dot4(uint t, uint q) {
#if DOT_PRODUCT
  return dot_4x8packed_ss_int(t, q);
#else
  const int4 products = convert_int4(as_char4(t)) * convert_int4(as_char4(q));
  return products.x + products.y + products.z + products.w;
#endif
}
void dot_rows(__global const uint *row, __global const uint *const *q, uint groups, uint part,
               int *sums) {
  for (uint j = 0; j < C2; ++j) sums[j] = 0;
  for (uint w = part; w < 8 * groups; w += C1) {
    const uint codes = row[w], at = w / 8 * 32 + w % 8;
    for (uint c = 0; c < 4; ++c) {
      // Each byte less one: the high bits keep a borrow from going further.
      const uint code = codes >> (6 - 2 * c) & 0x03030303u;
      const uint t = ((code | 0x80808080u) - 0x01010101u) ^ 0x80808080u;
      for (uint j = 0; j < C2; ++j) sums[j] += dot4(t, q[j][at + 8 * c]);
    }
  }
}
#endif

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
        for (uint j = 0; j < C2; ++j) shared[j * T + LOCAL_ID] = sums[j];
        for (uint half_count = C1 / 2; half_count != 0; half_count /= 2) {
          MEET;
          if (part < half_count)
            for (uint j = 0; j < C2; ++j)
              shared[j * T + LOCAL_ID] += shared[j * T + LOCAL_ID + half_count];
        }
        MEET;
        for (uint j = 0; j < C2; ++j) sums[j] = shared[j * T + LOCAL_ID - part];
        MEET;
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
