/* SPDX-License-Identifier: Apache-2.0 */
/* Keys, values and states of sequences: kept in the canonical layout, block after block. */
#include <stdlib.h>
#include <string.h>

#include "plain.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* Bytes of one head of a token's keys or values; 0 if they cannot be kept. */
static uint64_t head_bytes(uint32_t dtype, uint64_t n) {
  switch (dtype) {
    case BITNET_DTYPE_F32:
      return 4 * n;
    case BITNET_DTYPE_F16:
      return 2 * n;
    case BITNET_DTYPE_Q8_0:
      return n % BITNET_Q8_0_BLOCK ? 0 : n / BITNET_Q8_0_BLOCK * BITNET_Q8_0_BLOCK_BYTES;
    case BITNET_DTYPE_Q4_0:
      return n % BITNET_Q4_0_BLOCK ? 0 : n / BITNET_Q4_0_BLOCK * BITNET_Q4_0_BLOCK_BYTES;
    default:
      return 0;
  }
}

bitnet_status measure_pool(const bitnet_kv_config* given, bitnet_kv_pool* out, const char* where,
                           bitnet_error* err) {
  bitnet_kv_config c;
  const bitnet_status status =
      receive(given, offsetof(bitnet_kv_config, reserved_0), &c, sizeof c, where, err);
  if (status != BITNET_OK) return status;
  if (c.reserved_0 != 0 || c.head_dim_k != c.head_dim_v)
    return fail(err, BITNET_UNSUPPORTED, where, "keys of %u elements and values of %u",
                c.head_dim_k, c.head_dim_v);
  if (c.head_dim_k == 0) return fail(err, BITNET_INVALID_ARGUMENT, where, "heads without elements");
  *out = (struct bitnet_kv_pool){.is = c};
  out->k_bytes = head_bytes(c.dtype_k, c.head_dim_k);
  out->v_bytes = head_bytes(c.dtype_v, c.head_dim_v);
  if (out->k_bytes == 0 || out->v_bytes == 0)
    return fail(err, BITNET_UNSUPPORTED, where,
                "heads of %u elements cannot be of types %u and %u here", c.head_dim_k, c.dtype_k,
                c.dtype_v);
  if (product(out->k_bytes + out->v_bytes, c.n_kv_heads, &out->layer_bytes) &&
      product(out->layer_bytes, c.block_tokens, &out->layer_bytes) &&
      product(out->layer_bytes, c.n_layers, &out->block_bytes) && out->block_bytes != 0 &&
      out->block_bytes <= INT64_MAX)
    return BITNET_OK;
  return fail(err, BITNET_INVALID_ARGUMENT, where, "blocks of that size cannot be");
}

bitnet_status kv_pool_create(bitnet_device* device, const bitnet_kv_config* config,
                             bitnet_kv_pool** out, bitnet_error* err) {
  NEED(out);
  struct bitnet_kv_pool p, *pool;
  const bitnet_status status = measure_pool(config, &p, __func__, err);
  if (status != BITNET_OK) return status;
  const uint32_t n = p.is.n_blocks, n_states = p.is.n_states;
  if (n == 0 || (uint64_t)n * p.is.block_tokens > INT32_MAX)
    return fail(err, BITNET_INVALID_ARGUMENT, __func__, "%u blocks of %u tokens: slots are i32", n,
                p.is.block_tokens);
  if ((n_states == 0) != (p.is.state_elements == 0) || n_states > INT32_MAX ||
      n_states > UINT32_MAX - n)
    return fail(err, BITNET_INVALID_ARGUMENT, __func__, "%u states of %u elements", n_states,
                p.is.state_elements);
  pool = malloc(sizeof *pool);
  p.data = calloc(n, p.block_bytes);
  if (n_states != 0) p.states = calloc(n_states, p.is.state_elements * sizeof *p.states);
  if (!pool || !p.data || (n_states != 0 && !p.states)) {
    free(pool);
    free(p.data);
    free(p.states);
    return fail(err, BITNET_OUT_OF_MEMORY, __func__, "no memory for %u times %llu bytes", n,
                (unsigned long long)p.block_bytes);
  }
  *pool = p;
  *out = pool;
  return BITNET_OK;
}

/* States count on from the blocks. */
static bool is_state(const bitnet_kv_pool* pool, uint32_t index) {
  return index >= pool->is.n_blocks;
}

static uint64_t bytes_of(const bitnet_kv_pool* pool, uint32_t index) {
  return is_state(pool, index) ? pool->is.state_elements * sizeof(float) : pool->block_bytes;
}

static void* place_of(const bitnet_kv_pool* pool, uint32_t index) {
  if (!is_state(pool, index)) return pool->data + index * pool->block_bytes;
  return pool->states + (uint64_t)(index - pool->is.n_blocks) * pool->is.state_elements;
}

/* Whether the pool has the blocks of both lists, of which either may be missing, and none that is
 * written is read too or written twice. */
static bitnet_status check_blocks(const bitnet_kv_pool* pool, const uint32_t* read,
                                  const uint32_t* written, uint32_t n, const char* where,
                                  bitnet_error* err) {
  const uint32_t all = pool->is.n_blocks + pool->is.n_states;
  char* marked = calloc(all, 1);
  if (!marked) return fail(err, BITNET_OUT_OF_MEMORY, where, "out of memory");
  bool fine = true;
  for (uint32_t i = 0; written && i < n && fine; ++i) {
    fine = written[i] < all && !marked[written[i]];
    if (fine) marked[written[i]] = 1;
  }
  for (uint32_t i = 0; read && i < n && fine; ++i) {
    fine = read[i] < all && !marked[read[i]];
    if (fine && written) fine = is_state(pool, read[i]) == is_state(pool, written[i]);
  }
  free(marked);
  if (fine) return BITNET_OK;
  return fail(err, BITNET_INVALID_ARGUMENT, where,
              "a block is not among the %u of the pool, is named twice, or with a state",
              pool->is.n_blocks);
}

bitnet_status kv_copy(bitnet_queue* queue, bitnet_kv_pool* pool, const uint32_t* from,
                      const uint32_t* to, uint32_t n, uint64_t signal, bitnet_error* err) {
  NEED(queue);
  NEED(pool);
  NEED(n == 0 || (from && to));
  bitnet_status status = check_signal(queue, signal, __func__, err);
  if (status == BITNET_OK) status = check_blocks(pool, from, to, n, __func__, err);
  if (status != BITNET_OK) return status;
  for (uint32_t i = 0; i < n; ++i)
    memcpy(place_of(pool, to[i]), place_of(pool, from[i]), bytes_of(pool, to[i]));
  atomic_store(&queue->timeline, signal);
  return BITNET_OK;
}

static bitnet_status check_bytes(const bitnet_kv_pool* pool, const uint32_t* blocks, uint32_t n,
                                 uint64_t bytes, const char* where, bitnet_error* err) {
  uint64_t left = bytes;
  bool fine = true;
  for (uint32_t i = 0; i < n && fine; ++i) {
    fine = bytes_of(pool, blocks[i]) <= left;
    if (fine) left -= bytes_of(pool, blocks[i]);
  }
  if (fine && left == 0) return BITNET_OK;
  return fail(err, BITNET_INVALID_ARGUMENT, where, "%u blocks take %llu bytes each, not %llu", n,
              (unsigned long long)pool->block_bytes, (unsigned long long)bytes);
}

bitnet_status kv_export(bitnet_queue* queue, bitnet_kv_pool* pool, const uint32_t* blocks,
                        uint32_t n, void* out, uint64_t bytes, uint64_t signal, bitnet_error* err) {
  NEED(queue);
  NEED(pool);
  NEED(n == 0 || (blocks && out));
  bitnet_status status = check_signal(queue, signal, __func__, err);
  if (status == BITNET_OK) status = check_blocks(pool, blocks, NULL, n, __func__, err);
  if (status == BITNET_OK) status = check_bytes(pool, blocks, n, bytes, __func__, err);
  if (status != BITNET_OK) return status;
  char* to = out;
  for (uint32_t i = 0; i < n; to += bytes_of(pool, blocks[i++]))
    memcpy(to, place_of(pool, blocks[i]), bytes_of(pool, blocks[i]));
  atomic_store(&queue->timeline, signal);
  return BITNET_OK;
}

bitnet_status kv_import(bitnet_queue* queue, bitnet_kv_pool* pool, const uint32_t* blocks,
                        uint32_t n, const void* data, uint64_t bytes, uint64_t signal,
                        bitnet_error* err) {
  NEED(queue);
  NEED(pool);
  NEED(n == 0 || (blocks && data));
  bitnet_status status = check_signal(queue, signal, __func__, err);
  if (status == BITNET_OK) status = check_blocks(pool, NULL, blocks, n, __func__, err);
  if (status == BITNET_OK) status = check_bytes(pool, blocks, n, bytes, __func__, err);
  if (status != BITNET_OK) return status;
  const char* from = data;
  for (uint32_t i = 0; i < n; from += bytes_of(pool, blocks[i++]))
    memcpy(place_of(pool, blocks[i]), from, bytes_of(pool, blocks[i]));
  atomic_store(&queue->timeline, signal);
  return BITNET_OK;
}

void kv_pool_destroy(bitnet_kv_pool* pool) {
  if (!pool) return;
  free(pool->data);
  free(pool->states);
  free(pool);
}
