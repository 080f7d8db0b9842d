// C1, C2: element types of keys and values; C3: elements of y that a thread keeps.
//
// Softmax by tiles of positions: if a tile has a larger score, the earlier sums are scaled.
#include "common.cl"
#include "pieces.cl"
#include "group.cl"

typedef struct {
  uint rows, n_heads, n_kv_heads, head_dim, block_tokens, max_blocks;
  float scale;
  uint window;
} params;

#if C1 == DTYPE_F32
#define KEY_PIECE piece_f32
#define KEY_END end_f32
#define KEY_WORDS(n) (n)
#elif C1 == DTYPE_F16
#define KEY_PIECE piece_f16
#define KEY_END end_f16
#define KEY_WORDS(n) (((n) + 1) / 2)
#elif C1 == DTYPE_Q8_0
#define KEY_PIECE piece_q8_0
#define KEY_END end_q8_0
#define KEY_WORDS(n) ((n) / 32 * 9)
#else
#define KEY_PIECE piece_q4_0
#define KEY_END end_q4_0
#define KEY_WORDS(n) ((n) / 32 * 5)
#endif
#if C2 == DTYPE_F32
#define VALUE_AT(row, i) (((__global const float *)(row))[i])
#define VALUE_PIECE piece_f32
#define VALUE_END end_f32
#define VALUE_WORDS(n) (n)
#elif C2 == DTYPE_F16
#define VALUE_AT(row, i) half_at(row, i)
#define VALUE_PIECE piece_f16
#define VALUE_END end_f16
#define VALUE_WORDS(n) (((n) + 1) / 2)
#elif C2 == DTYPE_Q8_0
#define VALUE_AT(row, i)           \
  (half_at((row) + (i) / 32 * 9, 0) * \
   (float)((__global const char *)((row) + (i) / 32 * 9 + 1))[(i) % 32])
#define VALUE_PIECE piece_q8_0
#define VALUE_END end_q8_0
#define VALUE_WORDS(n) ((n) / 32 * 9)
#else
#define VALUE_AT(row, i) q4_0_at((row) + (i) / 32 * 5, (i) % 32)
#define VALUE_PIECE piece_q4_0
#define VALUE_END end_q4_0
#define VALUE_WORDS(n) ((n) / 32 * 5)
#endif

// Element i of a block.
static float q4_0_at(__global const uint *block, uint i) {
  const uchar both = ((__global const uchar *)(block + 1))[i % 16];
  return half_at(block, 0) * ((float)(i < 16 ? both & 15 : both >> 4) - 8.0f);
}

#if T > 1
#define TILE T
#else
#define TILE 16  // positions: for one thread, so that few sums are scaled
#endif

static float score(__global const float *q, __global const uint *key, uint head_dim) {
  const uint pieces = head_dim / 16, left = head_dim % 16;
  float16 lanes = (float16)(0.0f);
  for (uint i = 0; i < pieces; ++i) lanes += KEY_PIECE(key, i) * vload16(i, q);
  if (left != 0)
    lanes += KEY_END(key, pieces, left) * end_f32((__global const uint *)q, pieces, left);
  return sum16(lanes);
}

KERNEL(BIND(const uint, header), BIND(const float, q), BIND(const uint, positions),
       BIND(const uint, sequences), BIND(const uint, block_tables), BIND(const uint, keys),
       BIND(const uint, values), BIND(float, y), const params p) {
  OPEN(const uint, header);
  OPEN(const float, q);
  OPEN(const uint, positions);
  OPEN(const uint, sequences);
  OPEN(const uint, block_tables);
  OPEN(const uint, keys);
  OPEN(const uint, values);
  OPEN(float, y);
#if T > 1
  __local float weights[TILE];  // scores, then weights
  __local uint at[TILE];        // rows of keys and values, of this KV head
#else
  float weights[TILE];
  uint at[TILE];
#endif
  const uint window = header[HEADER_WINDOW], keep = header[HEADER_KEEP];
  EACH_Y(t, header[p.rows]) {
    const uint end = positions[t] + 1;
    const uint begin_of_step = window == 0 || end <= window ? 0 : end - window;
    const uint kept = min(keep, begin_of_step);
    const uint least = p.window == 0 || end <= p.window ? 0 : end - p.window;
    const uint kept_from = min(least, kept), early = kept - kept_from;
    const uint begin = max(begin_of_step, least);
    const uint seen = early + end - begin;
    __global const uint *table = block_tables + (ulong)sequences[t] * p.max_blocks;
    for (uint head = GROUP_X; head < p.n_heads; head += GROUPS_X) {
      const uint kv_head = head / (p.n_heads / p.n_kv_heads);
      const ulong mine = ((ulong)t * p.n_heads + head) * p.head_dim;
      float highest = -INFINITY, total = 0;
#if T > 1
      float sums[C3];
      for (uint e = 0; e < C3; ++e) sums[e] = 0;
#else
      float16 sums[(C3 + 15) / 16];
      for (uint e = 0; e < (C3 + 15) / 16; ++e) sums[e] = (float16)(0.0f);
#endif
      for (uint first = 0; first < seen; first += TILE) {
        const uint n = min((uint)TILE, seen - first);
        for (uint j = LOCAL_ID; j < n; j += T) {
          const uint index = first + j;
          const uint position = index < early ? kept_from + index : begin + index - early;
          at[j] = (table[position / p.block_tokens] * p.n_kv_heads + kv_head) * p.block_tokens +
                  position % p.block_tokens;
          weights[j] = score(q + mine, keys + (ulong)at[j] * KEY_WORDS(p.head_dim),
                                   p.head_dim) *
                       p.scale;
        }
        MEET;
        float now = highest;
        for (uint j = 0; j < n; ++j) now = larger(now, weights[j]);
        MEET;
        for (uint j = LOCAL_ID; j < n; j += T) weights[j] = exp(weights[j] - now);
        MEET;
        const float shrink = exp(highest - now);
        highest = now;
        total *= shrink;
        for (uint j = 0; j < n; ++j) total += weights[j];
#if T > 1
        for (uint e = 0; e < C3; ++e) {
          const uint d = LOCAL_ID + e * T;
          if (d >= p.head_dim) continue;
          float sum = sums[e] * shrink;
          for (uint j = 0; j < n; ++j)
            sum += weights[j] * VALUE_AT(values + (ulong)at[j] * VALUE_WORDS(p.head_dim), d);
          sums[e] = sum;
        }
#else
        for (uint e = 0; e < p.head_dim / 16; ++e) {
          float16 sum = sums[e] * shrink;
          for (uint j = 0; j < n; ++j)
            sum += weights[j] * VALUE_PIECE(values + (ulong)at[j] * VALUE_WORDS(p.head_dim), e);
          sums[e] = sum;
        }
        if (p.head_dim % 16 != 0) {
          const uint e = p.head_dim / 16;
          float16 sum = sums[e] * shrink;
          for (uint j = 0; j < n; ++j)
            sum += weights[j] * VALUE_END(values + (ulong)at[j] * VALUE_WORDS(p.head_dim), e,
                                          p.head_dim % 16);
          sums[e] = sum;
        }
#endif
        MEET;
      }
#if T > 1
      for (uint e = 0; e < C3; ++e)
        if (LOCAL_ID + e * T < p.head_dim) y[mine + LOCAL_ID + e * T] = sums[e] / total;
#else
      for (uint e = 0; e < p.head_dim / 16; ++e) vstore16(sums[e] / total, e, y + mine);
      for (uint d = p.head_dim / 16 * 16; d < p.head_dim; ++d) {
        float last[16];
        vstore16(sums[p.head_dim / 16], 0, last);
        y[mine + d] = last[d % 16] / total;
      }
#endif
    }
  }
}
