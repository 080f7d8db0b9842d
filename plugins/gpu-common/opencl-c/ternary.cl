// Sums of products of ternary rows and int8 activations. C1: threads that share a row of the matrix;
// TOKENS: that are taken together; Q_SPACE: where the activations are.

// Adds t * q over this thread's part of a row to sums[j], for token j at q + j * stride.
#if C1 == 1
// One thread to a row: vectors of 16, for cores. Eight products of at most 128 go to a lane in each
// group of 128 elements, so 16 groups fit an int16.
WITH_LOCAL void dot_rows(__global const uint *row, Q_SPACE const uint *const *q, uint groups, uint part,
               int *sums) {
  int16 wide[TOKENS];
  for (uint j = 0; j < TOKENS; ++j) wide[j] = (int16)(0);
  for (uint first = 0; first < groups; first += 16) {
    short16 narrow[TOKENS];
    for (uint j = 0; j < TOKENS; ++j) narrow[j] = (short16)(0);
    for (uint g = first; g < min(groups, first + 16); ++g)
      for (uint side = 0; side < 2; ++side) {
        const uchar16 codes = as_uchar16(vload4(side, row + 8 * g));
#define QUARTER(c)                                                                            \
  {                                                                                           \
    const short16 t = convert_short16((codes >> (uchar16)(6 - 2 * c)) & (uchar16)3) - (short16)1; \
    for (uint j = 0; j < TOKENS; ++j)                                                             \
      narrow[j] += t * convert_short16(as_char16(vload4(2 * c + side, q[j] + 32 * g)));       \
  }
        QUARTER(0) QUARTER(1) QUARTER(2) QUARTER(3)
#undef QUARTER
      }
    for (uint j = 0; j < TOKENS; ++j) wide[j] += convert_int16(narrow[j]);
  }
  for (uint j = 0; j < TOKENS; ++j) {
    const int8 a = wide[j].lo + wide[j].hi;
    const int4 b = a.lo + a.hi;
    sums[j] = b.x + b.y + b.z + b.w;
  }
}
#else
// Neighbouring threads read neighbouring words.
static int dot4(uint t, uint q) {
#if DOT_PRODUCT
  return dot_4x8packed_ss_int(t, q);
#else
  const int4 products = convert_int4(as_char4(t)) * convert_int4(as_char4(q));
  return products.x + products.y + products.z + products.w;
#endif
}
WITH_LOCAL void dot_rows(__global const uint *row, Q_SPACE const uint *const *q, uint groups, uint part,
               int *sums) {
  for (uint j = 0; j < TOKENS; ++j) sums[j] = 0;
  for (uint w = part; w < 8 * groups; w += C1) {
    const uint codes = row[w], at = w / 8 * 32 + w % 8;
    for (uint c = 0; c < 4; ++c) {
      // Each byte less one: the high bits keep a borrow from going further.
      const uint code = codes >> (6 - 2 * c) & 0x03030303u;
      const uint t = ((code | 0x80808080u) - 0x01010101u) ^ 0x80808080u;
      for (uint j = 0; j < TOKENS; ++j) sums[j] += dot4(t, q[j][at + 8 * c]);
    }
  }
}
#endif

#if C1 > 1
// Of the threads that share a row, for each token; all of them get it.
WITH_LOCAL void sum_of_lanes(int *sums, __local int *shared) {
  const uint part = LOCAL_ID % C1;
  for (uint j = 0; j < TOKENS; ++j) shared[j * T + LOCAL_ID] = sums[j];
  for (uint half_count = C1 / 2; half_count != 0; half_count /= 2) {
    MEET;
    if (part < half_count)
      for (uint j = 0; j < TOKENS; ++j)
        shared[j * T + LOCAL_ID] += shared[j * T + LOCAL_ID + half_count];
  }
  MEET;
  for (uint j = 0; j < TOKENS; ++j) sums[j] = shared[j * T + LOCAL_ID - part];
  MEET;
}
#endif
