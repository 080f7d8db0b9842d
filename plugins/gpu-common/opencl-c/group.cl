// What depends on the size of a work group, before the text of each kernel. Sums and maxima: every thread of the
// group calls them, and every thread gets the result.

#if T > 1
#define MEET barrier(CLK_LOCAL_MEM_FENCE)
#define EACH_X(i, n) EACH_STRIDE(i, n, T, LOCAL_ID)
#define EACH_GROUP(i, n) EACH_STRIDE(i, n, 1, 0)
#else
#define MEET
#define EACH_X EACH_PIECE
#define EACH_GROUP EACH_PIECE
#endif

#if DOUBLES
#define EXACT_SUM double
#else
#define EXACT_SUM float2  // a sum and the part that rounding removed
#endif

WITH_LOCAL float group_max(float mine, __local float *shared) {
#if T > 1
  shared[LOCAL_ID] = mine;
  for (uint half_count = T / 2; half_count != 0; half_count /= 2) {
    MEET;
    if (LOCAL_ID < half_count)
      shared[LOCAL_ID] = larger(shared[LOCAL_ID], shared[LOCAL_ID + half_count]);
  }
  MEET;
  mine = shared[0];
  MEET;
#endif
  return mine;
}

#if !DOUBLES
static float2 plus(float2 a, float2 b) {
  const float sum = a.x + b.x;
  const float part = sum - a.x;
  const float lost = (a.x - (sum - part)) + (b.x - part);
  return (float2)(sum, a.y + b.y + lost);
}
static float2 square(float x) {
  const float product = x * x;
  return (float2)(product, fma(x, x, -product));
}
#endif

// The sum of the squares of a row of k elements. Eight sums to a thread, or its adds would wait for
// each other.
WITH_LOCAL EXACT_SUM square_sum(__global const float *x, uint k, __local EXACT_SUM *shared) {
#if DOUBLES
  double8 sums = (double8)(0.0);
  for (uint i = 8 * LOCAL_ID; i + 8 <= k; i += 8 * T) {
    const double8 v = convert_double8(vload8(0, x + i));
    sums += v * v;
  }
  const double4 four = sums.lo + sums.hi;
  const double2 two = four.lo + four.hi;
  double mine = two.x + two.y;
  if (LOCAL_ID == 0)
    for (uint i = k / 8 * 8; i < k; ++i) mine += (double)x[i] * (double)x[i];
#else
  float2 mine = (float2)(0.0f);
  for (uint i = LOCAL_ID; i < k; i += T) mine = plus(mine, square(x[i]));
#endif
#if T > 1
  shared[LOCAL_ID] = mine;
  for (uint half_count = T / 2; half_count != 0; half_count /= 2) {
    MEET;
    if (LOCAL_ID < half_count)
#if DOUBLES
      shared[LOCAL_ID] += shared[LOCAL_ID + half_count];
#else
      shared[LOCAL_ID] = plus(shared[LOCAL_ID], shared[LOCAL_ID + half_count]);
#endif
  }
  MEET;
  mine = shared[0];
  MEET;
#endif
  return mine;
}

// 1 / sqrt(mean(x^2) + eps)
WITH_LOCAL float norm_factor(__global const float *x, uint k, float eps, __local EXACT_SUM *shared) {
  const EXACT_SUM sum = square_sum(x, k, shared);
#if DOUBLES
  const float mean = (float)(sum / (double)k);
#else
  const float mean = (sum.x + sum.y) / (float)k;
#endif
  return 1.0f / sqrt(mean + eps);
}

// 1 / sqrt(sum(x^2) + eps)
WITH_LOCAL float inverse_length(__global const float *x, uint k, float eps, __local EXACT_SUM *shared) {
  const EXACT_SUM sum = square_sum(x, k, shared);
#if DOUBLES
  return 1.0f / sqrt((float)sum + eps);
#else
  return 1.0f / sqrt(sum.x + sum.y + eps);
#endif
}

// Quantises value(i) of a row: `largest` is the greatest |value| that this thread met.
#define QUANTISE_ROW(value, largest, k, q, s, shared)                                        \
  {                                                                                          \
    const float scale = quant_scale(group_max(largest, shared));                       \
    if (LOCAL_ID == 0) *(s) = scale;                                                         \
    for (uint w = LOCAL_ID; w < i8_stride(k); w += T) {                                      \
      const uint i = 4 * w;                                                                  \
      (q)[w] = i + 3 < (k)                                                                   \
                   ? packed4(quantised(value(i), scale), quantised(value(i + 1), scale),     \
                             quantised(value(i + 2), scale), quantised(value(i + 3), scale)) \
                   : packed4(i < (k) ? quantised(value(i), scale) : 0,                       \
                             i + 1 < (k) ? quantised(value(i + 1), scale) : 0,               \
                             i + 2 < (k) ? quantised(value(i + 2), scale) : 0, 0);           \
    }                                                                                        \
  }
