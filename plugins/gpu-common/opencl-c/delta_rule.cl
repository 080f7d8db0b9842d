// C1: rows of the state of a head.
#include "common.cl"
#include "group.cl"
#include "runs.cl"

typedef struct {
  uint rows, element, state_words, n_k, n_v, d_v, turns, tiles;
  float scale, eps;
  uint first, last;
} params;

// Columns from j on of a head that begins at `held`. Its thread has them for itself.
#define COLUMNS(TYPE, SUFFIX, j)                                                               \
  {                                                                                            \
    __global float *s = held + (j);                                                            \
    TYPE sum = (TYPE)(0.0f), result = (TYPE)(0.0f);                                            \
    for (uint i = 0; i < d_k; ++i) {                                                           \
      if (nothing) PUT##SUFFIX((TYPE)(0.0f), s + (ulong)i * p.d_v);                            \
      sum += keys[i] * (GET##SUFFIX(s + (ulong)i * p.d_v) * decay);                            \
    }                                                                                          \
    const TYPE u = beta * (GET##SUFFIX(v + (j)) - sum);                                        \
    for (uint i = 0; i < d_k; ++i) {                                                           \
      const TYPE now = GET##SUFFIX(s + (ulong)i * p.d_v) * decay + keys[i] * u;                \
      PUT##SUFFIX(now, s + (ulong)i * p.d_v);                                                  \
      result += queries[i] * now;                                                              \
    }                                                                                          \
    PUT##SUFFIX(result, out + (j));                                                            \
  }

KERNEL(BIND(const uint, header), BIND(const float, x), BIND(const float, gates),
       BIND(const uint, positions), BIND(const uint, sequences), BIND(const uint, states),
       BIND(float, state), BIND(float, y), const params p) {
  OPEN(const uint, header);
  OPEN(const float, x);
  OPEN(const float, gates);
  OPEN(const uint, positions);
  OPEN(const uint, sequences);
  OPEN(const uint, states);
  OPEN(float, state);
  OPEN(float, y);
  __local EXACT_SUM shared[T];
  __local float queries[ROOM], keys[ROOM];  // of the token, normalised
  const uint d_k = C1;
  const uint end = min(header[p.rows], p.last);
  const ulong width = 2 * (ulong)p.n_k * d_k + (ulong)p.n_v * p.d_v;
  EACH_RUN(begin, after, p.first, end) {
    const bool fresh = positions[begin] == 0;
    __global float *kept = state + (ulong)states[sequences[begin]] * p.state_words + p.element;
    EACH_GROUP(unit, p.n_v * p.tiles) {
      const uint head = unit / p.tiles, tile = unit % p.tiles;
      const uint key_head = p.turns ? head % p.n_k : head / (p.n_v / p.n_k);
      __global float *held = kept + (ulong)head * d_k * p.d_v;
      for (uint t = begin; t < after; ++t) {
        __global const float *q = x + t * width + (ulong)key_head * d_k;
        __global const float *k = q + (ulong)p.n_k * d_k;
        __global const float *v = x + t * width + 2 * (ulong)p.n_k * d_k + (ulong)head * p.d_v;
        __global float *out = y + ((ulong)t * p.n_v + head) * p.d_v;
        const float of_q = inverse_length(q, d_k, p.eps, shared);
        const float of_k = inverse_length(k, d_k, p.eps, shared);
        MEET;  // no thread reads the previous token any more
        for (uint i = LOCAL_ID; i < d_k; i += T) {
          queries[i] = q[i] * of_q * p.scale;
          keys[i] = k[i] * of_k;
        }
        MEET;
        const float decay = gates[2 * (ulong)t * p.n_v + head];
        const float beta = gates[2 * (ulong)t * p.n_v + p.n_v + head];
        const bool nothing = fresh && t == begin;
#if T > 1
        for (uint j = tile * T + LOCAL_ID; j < p.d_v; j += p.tiles * T) COLUMNS(float, 1, j)
#else
        for (uint j = 16 * tile; j < p.d_v; j += 16 * p.tiles) {
          if (j + 16 <= p.d_v)
            COLUMNS(float16, 16, j)
          else
            for (uint one = j; one < p.d_v; ++one) COLUMNS(float, 1, one)
        }
#endif
      }
    }
  }
}
