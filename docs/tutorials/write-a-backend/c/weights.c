/* SPDX-License-Identifier: Apache-2.0 */
/* Weights, kept as the host streams them. */
#include <stdlib.h>
#include <string.h>

#include "plain.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

struct format {
  uint32_t id; /* BITNET_FORMAT_* */
  uint32_t block, block_bytes;
};

static const struct format formats[] = {
    {BITNET_FORMAT_F32, 1, 4},      {BITNET_FORMAT_F16, 1, 2},
    {BITNET_FORMAT_BF16, 1, 2},     {BITNET_FORMAT_Q8_0, 32, 34},
    {BITNET_FORMAT_Q4_0, 32, 18},   {BITNET_FORMAT_Q4_K, 256, 144},
    {BITNET_FORMAT_Q6_K, 256, 210}, {BITNET_FORMAT_TERNARY2, 128, 32},
};

static const struct format* find_format(uint32_t id) {
  for (uint32_t i = 0; i < sizeof formats / sizeof formats[0]; ++i)
    if (formats[i].id == id) return &formats[i];
  return NULL;
}

/* Only the groups of a ternary row are padded. Products of wider rows would not fit an int32. */
static bitnet_status measure(const bitnet_tensor_desc* d, const struct format* f,
                             struct tensor* out, const char* where, bitnet_error* err) {
  const bool ternary = f->id == BITNET_FORMAT_TERNARY2;
  if (d->rank > 2)
    return fail(err, BITNET_UNSUPPORTED, where, "a weight of %u dimensions", d->rank);
  if (d->ne[0] <= 0 || d->ne[1] <= 0 || d->ne[2] != 1 || d->ne[3] != 1 || d->rank < 1 ||
      (d->rank == 1 && d->ne[1] != 1) || d->ne[0] > INT32_MAX || d->ne[1] > INT32_MAX)
    return fail(err, BITNET_INVALID_ARGUMENT, where, "%lld x %lld elements in %u dimensions",
                (long long)d->ne[0], (long long)d->ne[1], d->rank);
  if (ternary && (d->rank != 2 || d->ne[0] > 1 << 24))
    return fail(err, BITNET_UNSUPPORTED, where, "ternary rows have at most 2^24 elements here");
  out->k = (uint64_t)d->ne[0];
  out->m = (uint64_t)d->ne[1];
  out->row_bytes = (out->k + f->block - 1) / f->block * f->block_bytes;
  if ((!ternary && out->k % f->block != 0) || !product(out->row_bytes, out->m, &out->bytes) ||
      d->data_bytes != out->bytes)
    return fail(err, BITNET_INVALID_ARGUMENT, where,
                "%lld x %lld elements of format %u do not take %llu bytes", (long long)d->ne[0],
                (long long)d->ne[1], d->format, (unsigned long long)d->data_bytes);
  if (!ternary) return BITNET_OK;
  out->scale_group = d->scale_group;
  out->n_scales = d->scale_group == 0 ? 1 : out->m * (out->k / d->scale_group);
  if ((d->scale_group == 0 || out->k % d->scale_group == 0) && d->n_scales == out->n_scales)
    return BITNET_OK;
  return fail(err, BITNET_INVALID_ARGUMENT, where, "%llu scales for groups of %llu elements",
              (unsigned long long)d->n_scales, (unsigned long long)d->scale_group);
}

/* Whether a tensor of an unknown format matters, only the caller knows. */
static bitnet_status describe(const bitnet_tensor_desc* desc, struct tensor* out, const char* where,
                              bitnet_error* err) {
  bitnet_tensor_desc d;
  const bitnet_status status = receive(desc, sizeof d, &d, sizeof d, where, err);
  if (status != BITNET_OK) return status;
  if (d.reserved_0 != 0)
    return fail(err, BITNET_UNSUPPORTED, where, "reserved_0 of a tensor is not 0");
  *out = (struct tensor){.format = d.format, .sealed = true};
  const struct format* f = find_format(d.format);
  return f ? measure(&d, f, out, where, err) : BITNET_OK;
}

static bitnet_status check_format(const struct tensor* t, const char* where, bitnet_error* err) {
  if (find_format(t->format)) return BITNET_OK;
  return fail(err, BITNET_UNSUPPORTED, where, "weights of format %u are not known", t->format);
}

/* Room for a tensor, and its scales, which only the caller keeps until now. */
static bitnet_status make_room(const bitnet_tensor_desc* d, struct tensor* t, const char* where,
                               bitnet_error* err) {
  const bitnet_status status = check_format(t, where, err);
  if (status != BITNET_OK) return status;
  if (t->n_scales != 0 && !d->scales)
    return fail(err, BITNET_INVALID_ARGUMENT, where, "a ternary weight without scales");
  t->sealed = false;
  t->data = malloc(t->bytes);
  if (t->n_scales != 0) t->scales = malloc(t->n_scales * sizeof *t->scales);
  if (!t->data || (t->n_scales != 0 && !t->scales))
    return fail(err, BITNET_OUT_OF_MEMORY, where, "no memory for %llu bytes",
                (unsigned long long)t->bytes);
  if (t->n_scales != 0) memcpy(t->scales, d->scales, t->n_scales * sizeof *t->scales);
  return BITNET_OK;
}

static const bitnet_tensor_desc* nth(const bitnet_tensor_desc* descs, uint32_t desc_size,
                                     uint32_t n) {
  return (const bitnet_tensor_desc*)(const void*)((const char*)descs + (uint64_t)n * desc_size);
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
    const bitnet_tensor_desc* d = nth(descs, desc_size, w->n);
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
                                   .layout_id = "plain-c/as-streamed/1"};
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
  for (uint32_t i = 0; i < w->n && status == BITNET_OK; ++i)
    status = make_room(nth(r.descs, r.desc_size, i), &w->tensors[i], __func__, err);
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
  if (bytes != 0) memcpy(t->data + offset, data, bytes);
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
  for (uint32_t i = 0; i < weights->n; ++i) {
    free(weights->tensors[i].data);
    free(weights->tensors[i].scales);
  }
  free(weights);
}
