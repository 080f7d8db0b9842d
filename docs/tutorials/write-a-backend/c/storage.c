/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: step buffers, weights, blocks of keys and values. */
#include <stdlib.h>
#include <string.h>

#include "plain.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* ---- buffers ---- */

bitnet_status buffer_create(bitnet_device* device, uint64_t bytes, bitnet_buffer** out,
                            bitnet_error* err) {
  struct bitnet_buffer* b = malloc(sizeof *b);
  const uint64_t rounded = (bytes + 63) / 64 * 64; /* as aligned_alloc wants it */
  void* data = rounded >= bytes ? aligned_alloc(64, rounded ? rounded : 64) : NULL;
  if (!b || !data) {
    free(b);
    free(data);
    return fail(err, BITNET_OUT_OF_MEMORY, "buffer_create", "no memory for %llu bytes",
                (unsigned long long)bytes);
  }
  memset(data, 0, rounded);
  *b = (struct bitnet_buffer){bytes, data};
  *out = b;
  return BITNET_OK;
}

bitnet_status buffer_map(bitnet_buffer* buffer, void** out, bitnet_error* err) {
  *out = buffer->data;
  return BITNET_OK;
}

void buffer_destroy(bitnet_buffer* buffer) {
  if (buffer) free(buffer->data);
  free(buffer);
}

/* ---- weights ---- */

static bitnet_status check_tensor(const bitnet_tensor_desc* d, const char* where,
                                  bitnet_error* err) {
  uint64_t elements;
  if (d->format != BITNET_FORMAT_F32)
    return fail(err, BITNET_UNSUPPORTED, where, "weights of format %u: only f32 (%u) is known",
                d->format, BITNET_FORMAT_F32);
  if (d->ne[0] <= 0 || d->ne[1] <= 0 ||
      !product((uint64_t)d->ne[0], (uint64_t)d->ne[1], &elements) ||
      elements > SIZE_MAX / sizeof(float) || d->data_bytes != elements * sizeof(float))
    return fail(err, BITNET_INVALID_ARGUMENT, where,
                "%lld x %lld f32 elements do not take %llu bytes", (long long)d->ne[0],
                (long long)d->ne[1], (unsigned long long)d->data_bytes);
  return BITNET_OK;
}

bitnet_status weight_plan(bitnet_device* device, const bitnet_tensor_desc* desc,
                          bitnet_weight_plan* out, bitnet_error* err) {
  const bitnet_status status = check_tensor(desc, "weight_plan", err);
  if (status != BITNET_OK) return status;
  const bitnet_weight_plan plan = {.struct_size = sizeof plan,
                                   .packed_bytes = desc->data_bytes,
                                   .alignment_bytes = sizeof(float),
                                   .layout_id = "plain-c/f32-rows/1"};
  hand_over(&plan, sizeof plan, out);
  return BITNET_OK;
}

bitnet_status weights_create(bitnet_device* device, const bitnet_tensor_desc* descs,
                             uint32_t desc_size, uint32_t n, bitnet_weights** out,
                             bitnet_error* err) {
  if (desc_size < sizeof *descs)
    return fail(err, BITNET_INVALID_ARGUMENT, "weights_create", "descriptions of %u bytes, not %zu",
                desc_size, sizeof *descs);
  struct bitnet_weights* w = calloc(1, sizeof *w + n * sizeof w->tensors[0]);
  bitnet_status status = w ? BITNET_OK : BITNET_OUT_OF_MEMORY;
  if (!w) return fail(err, status, "weights_create", "no memory for %u tensors", n);
  for (w->n = 0; w->n < n && status == BITNET_OK; ++w->n) {
    bitnet_tensor_desc d;
    struct tensor* t = &w->tensors[w->n];
    memcpy(&d, (const char*)descs + (uint64_t)w->n * desc_size, sizeof d);
    status = check_tensor(&d, "weights_create", err);
    if (status != BITNET_OK) break;
    *t = (struct tensor){
        (uint64_t)d.ne[0], (uint64_t)d.ne[1], d.data_bytes, 0, malloc(d.data_bytes), false};
    if (!t->data)
      status = fail(err, BITNET_OUT_OF_MEMORY, "weights_create", "no memory for %llu bytes",
                    (unsigned long long)d.data_bytes);
  }
  if (status != BITNET_OK) {
    weights_destroy(w);
    return status;
  }
  *out = w;
  return BITNET_OK;
}

bitnet_status weight_write(bitnet_weights* weights, uint32_t index, uint64_t offset,
                           const void* data, uint64_t bytes, bitnet_error* err) {
  struct tensor* t = index < weights->n ? &weights->tensors[index] : NULL;
  if (!t || t->sealed || offset != t->written || bytes > t->bytes - t->written)
    return fail(err, BITNET_INVALID_ARGUMENT, "weight_write",
                "tensor %u does not expect %llu bytes at %llu", index, (unsigned long long)bytes,
                (unsigned long long)offset);
  if (bytes != 0) memcpy((char*)t->data + offset, data, bytes);
  t->written += bytes;
  return BITNET_OK;
}

bitnet_status weight_alias(bitnet_weights* weights, uint32_t index, const void* data,
                           uint64_t bytes, bitnet_error* err) {
  return fail(err, BITNET_UNSUPPORTED, "weight_alias", "no plan accepts it");
}

bitnet_status weight_seal(bitnet_weights* weights, uint32_t index, bitnet_error* err) {
  struct tensor* t = index < weights->n ? &weights->tensors[index] : NULL;
  if (!t || t->written != t->bytes)
    return fail(err, BITNET_INVALID_ARGUMENT, "weight_seal",
                "tensor %u is unknown, or bytes of it are missing", index);
  t->sealed = true;
  return BITNET_OK;
}

void weights_destroy(bitnet_weights* weights) {
  if (!weights) return;
  for (uint32_t i = 0; i < weights->n; ++i) free(weights->tensors[i].data);
  free(weights);
}

/* ---- keys and values: kept in the canonical layout, which nothing here reads but the host ---- */

struct bitnet_kv_pool {
  uint32_t n_blocks;
  uint64_t block_bytes;
  char* data; /* (n_blocks, block_bytes) */
};

static uint64_t element_bytes(uint32_t dtype) {
  return dtype == BITNET_DTYPE_F32 ? 4 : dtype == BITNET_DTYPE_F16 ? 2 : 0;
}

bitnet_status kv_pool_create(bitnet_device* device, const bitnet_kv_config* config,
                             bitnet_kv_pool** out, bitnet_error* err) {
  const uint64_t k = element_bytes(config->dtype_k), v = element_bytes(config->dtype_v);
  if (k == 0 || v == 0)
    return fail(err, BITNET_UNSUPPORTED, "kv_pool_create", "keys and values are f32 or f16 here");
  uint64_t bytes = k + v, all;
  if (!product(bytes, config->n_layers, &bytes) || !product(bytes, config->n_kv_heads, &bytes) ||
      !product(bytes, config->head_dim, &bytes) || !product(bytes, config->block_tokens, &bytes) ||
      !product(bytes, config->n_blocks, &all) || all == 0)
    return fail(err, BITNET_INVALID_ARGUMENT, "kv_pool_create", "no such size can be");
  struct bitnet_kv_pool* pool = malloc(sizeof *pool);
  char* data = calloc(config->n_blocks, bytes);
  if (!pool || !data) {
    free(pool);
    free(data);
    return fail(err, BITNET_OUT_OF_MEMORY, "kv_pool_create", "no memory for %llu bytes",
                (unsigned long long)all);
  }
  *pool = (struct bitnet_kv_pool){config->n_blocks, bytes, data};
  *out = pool;
  return BITNET_OK;
}

bitnet_status kv_copy_blocks(bitnet_kv_pool* pool, const uint32_t* from, const uint32_t* to,
                             uint32_t n, bitnet_error* err) {
  for (uint32_t i = 0; i < n; ++i)
    if (from[i] >= pool->n_blocks || to[i] >= pool->n_blocks)
      return fail(err, BITNET_INVALID_ARGUMENT, "kv_copy_blocks", "there are %u blocks",
                  pool->n_blocks);
  for (uint32_t i = 0; i < n; ++i)
    memmove(pool->data + to[i] * pool->block_bytes, pool->data + from[i] * pool->block_bytes,
            pool->block_bytes);
  return BITNET_OK;
}

static bitnet_status check_block(const bitnet_kv_pool* pool, uint32_t block, uint64_t bytes,
                                 const char* where, bitnet_error* err) {
  if (block < pool->n_blocks && bytes == pool->block_bytes) return BITNET_OK;
  return fail(err, BITNET_INVALID_ARGUMENT, where, "block %u of %u with %llu bytes, not %llu",
              block, pool->n_blocks, (unsigned long long)bytes,
              (unsigned long long)pool->block_bytes);
}

bitnet_status kv_export(bitnet_kv_pool* pool, uint32_t block, void* out, uint64_t bytes,
                        bitnet_error* err) {
  const bitnet_status status = check_block(pool, block, bytes, "kv_export", err);
  if (status == BITNET_OK) memcpy(out, pool->data + block * pool->block_bytes, bytes);
  return status;
}

bitnet_status kv_import(bitnet_kv_pool* pool, uint32_t block, const void* data, uint64_t bytes,
                        bitnet_error* err) {
  const bitnet_status status = check_block(pool, block, bytes, "kv_import", err);
  if (status == BITNET_OK) memcpy(pool->data + block * pool->block_bytes, data, bytes);
  return status;
}

void kv_pool_destroy(bitnet_kv_pool* pool) {
  if (pool) free(pool->data);
  free(pool);
}
