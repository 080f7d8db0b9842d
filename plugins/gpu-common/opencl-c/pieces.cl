// Sixteen consecutive elements of a row, for each format: piece p holds [16 p, 16 p + 16).

static float half_at(__global const uint *words, uint i) {
  return vload_half(i, (__global const half *)words);
}

static float16 piece_f32(__global const uint *row, uint p) {
  return vload16(p, (__global const float *)row);
}
static float16 piece_f16(__global const uint *row, uint p) {
  return vload_half16(p, (__global const half *)row);
}
static float16 piece_bf16(__global const uint *row, uint p) {
  const uint8 both = vload8(p, row);
  const uint8 low = both << 16, high = both & 0xffff0000u;
  return as_float16((uint16)(low.s0, high.s0, low.s1, high.s1, low.s2, high.s2, low.s3, high.s3,
                             low.s4, high.s4, low.s5, high.s5, low.s6, high.s6, low.s7, high.s7));
}
static float16 piece_q8_0(__global const uint *row, uint p) {
  __global const uint *block = row + p / 2 * 9;
  return half_at(block, 0) * convert_float16(as_char16(vload4(p % 2, block + 1)));
}
static float16 piece_q4_0(__global const uint *row, uint p) {
  __global const uint *block = row + p / 2 * 5;
  const uchar16 both = as_uchar16(vload4(0, block + 1));
  const uchar16 q = p % 2 ? both >> (uchar16)4 : both & (uchar16)15;
  return half_at(block, 0) * (convert_float16(q) - 8.0f);
}
static float16 piece_q4_k(__global const uint *row, uint p) {
  __global const uint *block = row + p / 16 * 36;
  __global const uchar *s = (__global const uchar *)(block + 1);
  const uint j = p % 16 / 2;  // sub-block of 32
  const int scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
  const int minimum = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | (s[j] >> 6) << 4;
  const uchar16 both = as_uchar16(vload4(j / 2 * 2 + p % 2, block + 4));
  const uchar16 q = j % 2 ? both >> (uchar16)4 : both & (uchar16)15;
  const float step = half_at(block, 0) * (float)scale;
  return step * convert_float16(q) - half_at(block, 1) * (float)minimum;
}
static float16 piece_q6_k(__global const uint *row, uint p) {
  __global const uint *block = row + p / 16 * 53;
  const uint part = p % 16 / 8, quarter = p % 8 / 2, side = p % 2;  // of 128, 32 and 16
  const uchar16 low = as_uchar16(vload4(4 * part + quarter % 2 * 2 + side, block));
  const uchar16 high = as_uchar16(vload4(2 * part + side, block + 32));
  const uchar16 q = (quarter < 2 ? low & (uchar16)15 : low >> (uchar16)4) |
                    (high >> (uchar16)(2 * quarter) & (uchar16)3) << (uchar16)4;
  __global const char *scales = (__global const char *)(block + 48);
  const float step = half_at(block, 104) * (float)scales[8 * part + 2 * quarter + side];
  return step * (convert_float16(q) - 32.0f);
}
// t in {-1, 0, 1}, without its scale.
static float16 piece_ternary2(__global const uint *row, uint p) {
  __global const uint *group = row + p / 8 * 8;
  const uint quarter = p % 8 / 2;
  const uchar16 bytes = as_uchar16(vload4(p % 2, group));
  return convert_float16(bytes >> (uchar16)(6 - 2 * quarter) & (uchar16)3) - 1.0f;
}

// The first n < 16 elements of a piece that the row ends in, then zeros: formats without blocks.
static float16 end_f32(__global const uint *row, uint p, uint n) {
  float out[16];
  for (uint i = 0; i < 16; ++i) out[i] = i < n ? ((__global const float *)row)[16 * p + i] : 0.0f;
  return vload16(0, out);
}
static float16 end_f16(__global const uint *row, uint p, uint n) {
  float out[16];
  for (uint i = 0; i < 16; ++i) out[i] = i < n ? half_at(row, 16 * p + i) : 0.0f;
  return vload16(0, out);
}
static float16 end_bf16(__global const uint *row, uint p, uint n) {
  float out[16];
  for (uint i = 0; i < 16; ++i) {
    const uint at = 16 * p + i;
    out[i] = i < n ? as_float(at % 2 ? row[at / 2] & 0xffff0000u : row[at / 2] << 16) : 0.0f;
  }
  return vload16(0, out);
}
static float16 end_ternary2(__global const uint *row, uint p, uint n) {
  return piece_ternary2(row, p);  // rows are padded
}
// Formats of blocks have no such end.
#define end_q8_0(row, p, n) ((float16)(0.0f))
#define end_q4_0(row, p, n) ((float16)(0.0f))
#define end_q4_k(row, p, n) ((float16)(0.0f))
#define end_q6_k(row, p, n) ((float16)(0.0f))
