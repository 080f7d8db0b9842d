/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values of many sequences: where a token puts its own, and which it looks at. */
#include <math.h>
#include <string.h>

#include "kernels.h"

void rope(const struct work* w) {
  const bitnet_op* o = w->op;
  const uint64_t head_dim = (uint64_t)o->ints[1], turned = (uint64_t)o->ints[2];
  const bool neox = o->ints[3] == BITNET_ROPE_NEOX;
  const float* divisors = w->weight ? (const float*)(const void*)w->weight->data : NULL;
  memcpy(w->out[0], w->in[0], w->rows * w->k * sizeof(float));
  for (uint64_t t = 0; t < w->rows; ++t)
    for (uint64_t i = 0; i < turned / 2; ++i) {
      double angle = (double)w->facts->positions[t] * (double)o->floats[1] *
                     pow((double)o->floats[0], -2 * (double)i / (double)turned);
      if (divisors) angle /= (double)divisors[i];
      const float cosine = (float)cos(angle), sine = (float)sin(angle);
      const uint64_t a = neox ? i : 2 * i, b = neox ? i + turned / 2 : 2 * i + 1;
      for (uint64_t head = t * w->k; head < (t + 1) * w->k; head += head_dim) {
        const float* x = (const float*)w->in[0] + head;
        float* out = (float*)w->out[0] + head;
        out[a] = x[a] * cosine - x[b] * sine;
        out[b] = x[a] * sine + x[b] * cosine;
      }
    }
}

/* Where a pool has the keys of a head of the token in a slot. */
static unsigned char* key_at(const bitnet_kv_pool* pool, uint64_t layer, uint64_t slot,
                             uint64_t head) {
  const uint64_t tokens = pool->is.block_tokens;
  return pool->data + slot / tokens * pool->block_bytes + layer * pool->layer_bytes +
         (head * tokens + slot % tokens) * pool->k_bytes;
}

/* Values lie behind all keys of a layer. */
static unsigned char* value_at(const bitnet_kv_pool* pool, uint64_t layer, uint64_t slot,
                               uint64_t head) {
  const uint64_t tokens = pool->is.block_tokens;
  return pool->data + slot / tokens * pool->block_bytes + layer * pool->layer_bytes +
         pool->is.n_kv_heads * tokens * pool->k_bytes +
         (head * tokens + slot % tokens) * pool->v_bytes;
}

void kv_write(const struct work* w) {
  const bitnet_kv_pool* pool = w->facts->pool;
  const uint64_t layer = (uint64_t)w->op->ints[0], width = pool->is.head_dim_k;
  for (uint64_t t = 0; t < w->rows; ++t)
    for (uint64_t head = 0; head < pool->is.n_kv_heads; ++head) {
      const uint64_t slot = (uint64_t)w->facts->slots[t], at = t * w->k + head * width;
      write_head(pool->is.dtype_k, (const float*)w->in[0] + at, width,
                 key_at(pool, layer, slot, head));
      write_head(pool->is.dtype_v, (const float*)w->in[1] + at, width,
                 value_at(pool, layer, slot, head));
    }
}

/* The slot of a position of token t's own sequence. */
static uint64_t slot_of(const struct facts* f, uint64_t t, uint64_t position) {
  const int32_t* table = f->block_tables + (uint64_t)f->sequences[t] * f->max_blocks;
  return (uint64_t)table[position / f->block_tokens] * f->block_tokens + position % f->block_tokens;
}

/* One head of one token over the n positions in `seen`. Of scratch it takes the scores (n), and a
 * key or value. */
static void attend(const struct work* w, uint64_t t, uint64_t head, const int32_t* seen, uint64_t n,
                   float* scores, float* part) {
  const bitnet_kv_pool* pool = w->facts->pool;
  const uint64_t layer = (uint64_t)w->op->ints[0], width = pool->is.head_dim_k;
  const uint64_t kv_head = head / (uint64_t)(w->op->ints[1] / w->op->ints[2]);
  const float* q = (const float*)w->in[0] + t * w->k + head * width;
  float* out = (float*)w->out[0] + t * w->k + head * width;
  float largest = -INFINITY, sum = 0;
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t slot = slot_of(w->facts, t, (uint64_t)seen[i]);
    read_head(pool->is.dtype_k, key_at(pool, layer, slot, kv_head), width, part);
    scores[i] = 0;
    for (uint64_t d = 0; d < width; ++d) scores[i] += q[d] * part[d];
    scores[i] *= w->op->floats[0];
    if (scores[i] > largest) largest = scores[i];
  }
  for (uint64_t i = 0; i < n; ++i) {
    scores[i] = expf(scores[i] - largest);
    sum += scores[i];
  }
  memset(out, 0, width * sizeof *out);
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t slot = slot_of(w->facts, t, (uint64_t)seen[i]);
    read_head(pool->is.dtype_v, value_at(pool, layer, slot, kv_head), width, part);
    for (uint64_t d = 0; d < width; ++d) out[d] += scores[i] / sum * part[d];
  }
}

void attn_paged(const struct work* w) {
  const struct facts* f = w->facts;
  const uint64_t most_seen = (uint64_t)f->max_blocks * f->block_tokens;
  int32_t* seen = (int32_t*)(void*)w->scratch;
  float* scores = w->scratch + most_seen;
  const int32_t window = w->op->ints[4];
  for (uint64_t t = 0; t < w->rows; ++t) {
    const int64_t position = f->positions[t];
    uint64_t n = 0;
    for (int64_t p = 0; p <= position; ++p)
      if (sees(f, position, p) && (window == 0 || p > position - window)) seen[n++] = (int32_t)p;
    for (uint64_t head = 0; head < (uint64_t)w->op->ints[1]; ++head)
      attend(w, t, head, seen, n, scores, scores + most_seen);
  }
}
