// C1: rows that a sum is over.
#include "common.cl"
#include "group.cl"
#include "runs.cl"

typedef struct {
  uint rows, k, element, state_words, first, last;
} params;

static float factor1(__global const float *weight, uint n, uint i) { return weight[i]; }
static float16 factor16(__global const float *weight, uint n, uint i) {
  float out[16];
  for (uint c = 0; c < 16; ++c) out[c] = weight[c * n + i];
  return vload16(0, out);
}

// Columns from c on, tokens [begin, after). A thread has its columns for itself, in the state, too.
#define COLUMNS(TYPE, SUFFIX, c)                                                               \
  {                                                                                            \
    TYPE past[ROOM], factors[ROOM]; /* the row of the token is the last */                     \
    for (uint i = 0; i < n; ++i) {                                                             \
      factors[i] = factor##SUFFIX(weight + (ulong)(c) * n, n, i);                              \
      past[i] = (TYPE)(0.0f);                                                                  \
      if (!fresh && i + 1 < n) past[i] = GET##SUFFIX(kept + (ulong)i * p.k + (c));             \
    }                                                                                          \
    for (uint t = begin; t < after; ++t) {                                                     \
      past[n - 1] = GET##SUFFIX(x + (ulong)t * p.k + (c));                                     \
      TYPE sum = (TYPE)(0.0f);                                                                 \
      for (uint i = 0; i < n; ++i) sum += factors[i] * past[i];                                \
      PUT##SUFFIX(sum, y + (ulong)t * p.k + (c));                                              \
      for (uint i = 0; i + 1 < n; ++i) past[i] = past[i + 1];                                  \
    }                                                                                          \
    for (uint i = 0; i + 1 < n; ++i) PUT##SUFFIX(past[i], kept + (ulong)i * p.k + (c));        \
  }

KERNEL(BIND(const uint, header), BIND(const float, x), BIND(const float, weight),
       BIND(const uint, positions), BIND(const uint, sequences), BIND(const uint, states),
       BIND(float, state), BIND(float, y), const params p) {
  OPEN(const uint, header);
  OPEN(const float, x);
  OPEN(const float, weight);
  OPEN(const uint, positions);
  OPEN(const uint, sequences);
  OPEN(const uint, states);
  OPEN(float, state);
  OPEN(float, y);
  const uint n = C1;
  const uint end = min(header[p.rows], p.last);
  EACH_RUN(begin, after, p.first, end) {
    const bool fresh = positions[begin] == 0;
    __global float *kept = state + (ulong)states[sequences[begin]] * p.state_words + p.element;
#if T > 1
    EACH_X(c, p.k) COLUMNS(float, 1, c)
#else
    EACH_X(piece, (p.k + 15) / 16) {
      if (16 * piece + 16 <= p.k)
        COLUMNS(float16, 16, 16 * piece)
      else
        for (uint c = 16 * piece; c < p.k; ++c) COLUMNS(float, 1, c)
    }
#endif
  }
}
