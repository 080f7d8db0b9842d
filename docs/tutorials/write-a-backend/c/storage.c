/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: buffers, weights, blocks of keys and values. */
#include <stdlib.h>
#include <string.h>

#include "plain.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* ---- buffers ---- */

bitnet_status buffer_create(bitnet_device* device, const bitnet_buffer_request* request,
                            bitnet_buffer** out, bitnet_error* err) {
  NEED(out);
  bitnet_buffer_request r;
  const bitnet_status status = receive(request, sizeof r, &r, sizeof r, __func__, err);
  if (status != BITNET_OK) return status;
  if ((r.usage & BITNET_FLAGS_MUST_UNDERSTAND) != 0)
    return fail(err, BITNET_UNSUPPORTED, __func__, "usage %#x is not known", r.usage);
  if ((r.alignment_bytes & (r.alignment_bytes - 1)) != 0)
    return fail(err, BITNET_INVALID_ARGUMENT, __func__, "alignment %llu is no power of two",
                (unsigned long long)r.alignment_bytes);
  if (r.alignment_bytes > buffer_alignment)
    return fail(err, BITNET_UNSUPPORTED, __func__, "alignment %llu is more than %u",
                (unsigned long long)r.alignment_bytes, (unsigned)buffer_alignment);
  if (r.bytes == 0) return fail(err, BITNET_INVALID_ARGUMENT, __func__, "a buffer of no bytes");
  struct bitnet_buffer* b = malloc(sizeof *b);
  const uint64_t unit = buffer_alignment; /* of which aligned_alloc wants a multiple */
  const uint64_t rounded = (r.bytes + unit - 1) / unit * unit;
  char* data = rounded >= r.bytes ? aligned_alloc(unit, rounded) : NULL;
  if (!b || !data) {
    free(b);
    free(data);
    return fail(err, BITNET_OUT_OF_MEMORY, __func__, "no memory for %llu bytes",
                (unsigned long long)r.bytes);
  }
  memset(data, 0, rounded);
  *b = (struct bitnet_buffer){r.bytes, data};
  *out = b;
  return BITNET_OK;
}

bitnet_status buffer_map(bitnet_buffer* buffer, void** out, bitnet_error* err) {
  NEED(buffer);
  NEED(out);
  *out = buffer->data;
  return BITNET_OK;
}

void buffer_destroy(bitnet_buffer* buffer) {
  if (buffer) free(buffer->data);
  free(buffer);
}

/* ---- weights ---- */

/* Whether a tensor of an unknown format matters, only the caller knows. */
static bitnet_status describe(const bitnet_tensor_desc* desc, struct tensor* out, const char* where,
                              bitnet_error* err) {
  bitnet_tensor_desc d;
  uint64_t elements;
  const bitnet_status status = receive(desc, sizeof d, &d, sizeof d, where, err);
  if (status != BITNET_OK) return status;
  if (d.reserved_0 != 0)
    return fail(err, BITNET_UNSUPPORTED, where, "reserved_0 of a tensor is not 0");
  *out = (struct tensor){.format = d.format, .sealed = true};
  if (d.format != BITNET_FORMAT_F32) return BITNET_OK;
  if (d.ne[0] <= 0 || d.ne[1] <= 0 || d.ne[2] != 1 || d.ne[3] != 1 || d.rank < 1 || d.rank > 2 ||
      (d.rank == 1 && d.ne[1] != 1) || !product((uint64_t)d.ne[0], (uint64_t)d.ne[1], &elements) ||
      elements > SIZE_MAX / sizeof(float) || d.data_bytes != elements * sizeof(float))
    return fail(err, BITNET_INVALID_ARGUMENT, where,
                "%lld x %lld f32 elements in %u dimensions do not take %llu bytes",
                (long long)d.ne[0], (long long)d.ne[1], d.rank, (unsigned long long)d.data_bytes);
  out->k = (uint64_t)d.ne[0];
  out->m = (uint64_t)d.ne[1];
  out->bytes = d.data_bytes;
  return BITNET_OK;
}

static bitnet_status check_format(const struct tensor* t, const char* where, bitnet_error* err) {
  if (t->format == BITNET_FORMAT_F32) return BITNET_OK;
  return fail(err, BITNET_UNSUPPORTED, where, "weights of format %u: only f32 (%u) is known",
              t->format, BITNET_FORMAT_F32);
}

bitnet_status describe_weights(const bitnet_tensor_desc* descs, uint32_t desc_size, uint32_t n,
                               const char* where, bitnet_weights** out, bitnet_error* err) {
  if (n != 0 && (!descs || desc_size < sizeof *descs))
    return fail(err, BITNET_INVALID_ARGUMENT, where, "descriptions are missing, or of %u bytes",
                desc_size);
  struct bitnet_weights* w = calloc(1, sizeof *w + n * sizeof w->tensors[0]);
  if (!w) return fail(err, BITNET_OUT_OF_MEMORY, where, "no memory for %u tensors", n);
  bitnet_status status = BITNET_OK;
  for (w->n = 0; w->n < n && status == BITNET_OK; ++w->n) {
    const bitnet_tensor_desc* d =
        (const bitnet_tensor_desc*)((const char*)descs + (uint64_t)w->n * desc_size);
    status = d->struct_size <= desc_size
                 ? describe(d, &w->tensors[w->n], where, err)
                 : fail(err, BITNET_INVALID_ARGUMENT, where, "a description of %u bytes in %u",
                        d->struct_size, desc_size);
  }
  if (status == BITNET_OK)
    *out = w;
  else
    weights_destroy(w);
  return status;
}

bitnet_status weight_plan(bitnet_device* device, const bitnet_tensor_desc* desc,
                          bitnet_weight_plan* out, bitnet_error* err) {
  NEED(out);
  struct tensor t;
  bitnet_status status = describe(desc, &t, __func__, err);
  if (status == BITNET_OK) status = check_format(&t, __func__, err);
  if (status != BITNET_OK) return status;
  const bitnet_weight_plan plan = {.struct_size = sizeof plan,
                                   .packed_bytes = t.bytes,
                                   .alignment_bytes = sizeof(float),
                                   .layout_id = "plain-c/f32-rows/1"};
  hand_over(&plan, sizeof plan, out);
  return BITNET_OK;
}

bitnet_status weights_create(bitnet_device* device, const bitnet_weights_request* request,
                             bitnet_weights** out, bitnet_error* err) {
  NEED(out);
  bitnet_weights_request r;
  struct bitnet_weights* w;
  bitnet_status status = receive(request, sizeof r, &r, sizeof r, __func__, err);
  if (status == BITNET_OK && r.reserved_0 != 0)
    status = fail(err, BITNET_UNSUPPORTED, __func__, "reserved_0 of the request is not 0");
  if (status == BITNET_OK) status = describe_weights(r.descs, r.desc_size, r.n, __func__, &w, err);
  if (status != BITNET_OK) return status;
  for (uint32_t i = 0; i < w->n && status == BITNET_OK; ++i) {
    struct tensor* t = &w->tensors[i];
    t->sealed = false;
    status = check_format(t, __func__, err);
    if (status == BITNET_OK && !(t->data = malloc(t->bytes)))
      status = fail(err, BITNET_OUT_OF_MEMORY, __func__, "no memory for %llu bytes",
                    (unsigned long long)t->bytes);
  }
  if (status == BITNET_OK)
    *out = w;
  else
    weights_destroy(w);
  return status;
}

bitnet_status weight_write(bitnet_weights* weights, uint32_t index, uint64_t offset,
                           const void* data, uint64_t bytes, bitnet_error* err) {
  NEED(weights);
  struct tensor* t = index < weights->n ? &weights->tensors[index] : NULL;
  if (!t || t->sealed || offset != t->written || bytes > t->bytes - t->written ||
      (bytes != 0 && !data))
    return fail(err, BITNET_INVALID_ARGUMENT, __func__,
                "tensor %u does not expect %llu bytes at %llu", index, (unsigned long long)bytes,
                (unsigned long long)offset);
  if (bytes != 0) memcpy((char*)t->data + offset, data, bytes);
  t->written += bytes;
  return BITNET_OK;
}

bitnet_status weight_alias(bitnet_weights* weights, uint32_t index, const void* data,
                           uint64_t bytes, bitnet_error* err) {
  return fail(err, BITNET_UNSUPPORTED, __func__, "no plan accepts it");
}

bitnet_status weight_seal(bitnet_weights* weights, uint32_t index, bitnet_error* err) {
  NEED(weights);
  struct tensor* t = index < weights->n ? &weights->tensors[index] : NULL;
  if (!t || t->sealed || t->written != t->bytes)
    return fail(err, BITNET_INVALID_ARGUMENT, __func__,
                "tensor %u is unknown, sealed, or bytes of it are missing", index);
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

bitnet_status measure_block(const bitnet_kv_config* given, bitnet_kv_config* known, uint64_t* bytes,
                            const char* where, bitnet_error* err) {
  const bitnet_status status =
      receive(given, offsetof(bitnet_kv_config, reserved_0), known, sizeof *known, where, err);
  if (status != BITNET_OK) return status;
  const uint64_t k = element_bytes(known->dtype_k), v = element_bytes(known->dtype_v);
  if (k == 0 || v == 0 || known->reserved_0 != 0)
    return fail(err, BITNET_UNSUPPORTED, where, "keys and values are f32 or f16 here");
  if (known->n_states != 0 || known->state_elements != 0)
    return fail(err, BITNET_UNSUPPORTED, where, "pools have no states here");
  const uint64_t of_head = k * known->head_dim_k + v * known->head_dim_v;
  if (known->head_dim_k != 0 && known->head_dim_v != 0 &&
      product(of_head, known->n_layers, bytes) && product(*bytes, known->n_kv_heads, bytes) &&
      product(*bytes, known->block_tokens, bytes) && *bytes != 0 && *bytes <= INT64_MAX)
    return BITNET_OK;
  return fail(err, BITNET_INVALID_ARGUMENT, where, "blocks of that size cannot be");
}

bitnet_status kv_pool_create(bitnet_device* device, const bitnet_kv_config* config,
                             bitnet_kv_pool** out, bitnet_error* err) {
  NEED(out);
  bitnet_kv_config c;
  uint64_t bytes;
  const bitnet_status status = measure_block(config, &c, &bytes, __func__, err);
  if (status != BITNET_OK) return status;
  if (c.n_blocks == 0) return fail(err, BITNET_INVALID_ARGUMENT, __func__, "a pool without blocks");
  struct bitnet_kv_pool* pool = malloc(sizeof *pool);
  char* data = calloc(c.n_blocks, bytes);
  if (!pool || !data) {
    free(pool);
    free(data);
    return fail(err, BITNET_OUT_OF_MEMORY, __func__, "no memory for %u times %llu bytes",
                c.n_blocks, (unsigned long long)bytes);
  }
  *pool = (struct bitnet_kv_pool){c.n_blocks, bytes, data};
  *out = pool;
  return BITNET_OK;
}

static char* block(const bitnet_kv_pool* pool, uint32_t index) {
  return pool->data + index * pool->block_bytes;
}

/* Whether the pool has the blocks of both lists, of which either may be missing, and none that is
 * written is read too or written twice. */
static bitnet_status check_blocks(const bitnet_kv_pool* pool, const uint32_t* read,
                                  const uint32_t* written, uint32_t n, const char* where,
                                  bitnet_error* err) {
  char* marked = calloc(pool->n_blocks, 1);
  if (!marked) return fail(err, BITNET_OUT_OF_MEMORY, where, "out of memory");
  bool fine = true;
  for (uint32_t i = 0; written && i < n && fine; ++i) {
    fine = written[i] < pool->n_blocks && !marked[written[i]];
    if (fine) marked[written[i]] = 1;
  }
  for (uint32_t i = 0; read && i < n && fine; ++i)
    fine = read[i] < pool->n_blocks && !marked[read[i]];
  free(marked);
  if (fine) return BITNET_OK;
  return fail(err, BITNET_INVALID_ARGUMENT, where,
              "a block is not among the %u of the pool, or is named twice", pool->n_blocks);
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
    memcpy(block(pool, to[i]), block(pool, from[i]), pool->block_bytes);
  atomic_store(&queue->timeline, signal);
  return BITNET_OK;
}

static bitnet_status check_bytes(const bitnet_kv_pool* pool, uint32_t n, uint64_t bytes,
                                 const char* where, bitnet_error* err) {
  uint64_t needed;
  if (product(n, pool->block_bytes, &needed) && bytes == needed) return BITNET_OK;
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
  if (status == BITNET_OK) status = check_bytes(pool, n, bytes, __func__, err);
  if (status != BITNET_OK) return status;
  for (uint32_t i = 0; i < n; ++i)
    memcpy((char*)out + i * pool->block_bytes, block(pool, blocks[i]), pool->block_bytes);
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
  if (status == BITNET_OK) status = check_bytes(pool, n, bytes, __func__, err);
  if (status != BITNET_OK) return status;
  for (uint32_t i = 0; i < n; ++i)
    memcpy(block(pool, blocks[i]), (const char*)data + i * pool->block_bytes, pool->block_bytes);
  atomic_store(&queue->timeline, signal);
  return BITNET_OK;
}

void kv_pool_destroy(bitnet_kv_pool* pool) {
  if (pool) free(pool->data);
  free(pool);
}
