/* SPDX-License-Identifier: Apache-2.0 */
/* This backend's identity, its device, and its one exported symbol. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bitnet/abi/note.h"
#include "plain.h"

#define NAME "plain-c"
#define VERSION "0.1.0"
#define VENDOR "org.example"
#define LICENSE "Apache-2.0"

/* Readable before a byte of the library runs. */
BITNET_BACKEND_NOTE(NAME, VERSION, VENDOR, LICENSE,
                    BITNET_NOTE_FIELD("class", "cpu")
                        BITNET_NOTE_FIELD("flags", "hot-swap unloadable"))

enum { most_bytes = 4096 }; /* of a struct of the contract */

#define STR(literal) ((bitnet_str){literal, sizeof(literal) - 1})

bitnet_status fail(bitnet_error* err, bitnet_status code, const char* where, const char* format,
                   ...) {
  if (err && err->struct_size >= sizeof *err) {
    va_list values;
    memset(err, 0, sizeof *err);
    err->struct_size = sizeof *err;
    err->code = code;
    snprintf(err->where, sizeof err->where, "%s", where);
    va_start(values, format);
    vsnprintf(err->message, sizeof err->message, format, values);
    va_end(values);
  }
  return code;
}

static bool is_zero(const char* bytes, uint64_t from, uint64_t to) {
  for (; from < to; ++from)
    if (bytes[from] != 0) return false;
  return true;
}

bitnet_status receive(const void* from, uint64_t least, void* to, uint32_t size, const char* where,
                      bitnet_error* err) {
  uint32_t sent = 0;
  if (from) memcpy(&sent, from, sizeof sent); /* every struct starts with struct_size */
  if (sent < least || sent > most_bytes)
    return fail(err, BITNET_INVALID_ARGUMENT, where, "a struct is missing, or has %u bytes", sent);
  if (!is_zero(from, size, sent))
    return fail(err, BITNET_UNSUPPORTED, where,
                "the host says more than this backend knows: update the backend");
  memset(to, 0, size);
  memcpy(to, from, sent < size ? sent : size);
  return BITNET_OK;
}

bitnet_status receive_array(const void* from, uint32_t stride, uint32_t n, void** out,
                            uint32_t size, const char* where, bitnet_error* err) {
  if (n > most || (n != 0 && (!from || stride < size || stride > most_bytes)))
    return fail(err, BITNET_INVALID_ARGUMENT, where,
                "%u structs of %u bytes each: missing, too many or too short", n, stride);
  char* to = calloc(n + 1, size);
  if (!to) return fail(err, BITNET_OUT_OF_MEMORY, where, "no memory for %u structs", n);
  for (uint32_t i = 0; i < n; ++i) {
    const char* at = (const char*)from + (uint64_t)i * stride;
    memcpy(to + (uint64_t)i * size, at, size);
    if (is_zero(at, size, stride)) continue;
    free(to);
    return fail(err, BITNET_UNSUPPORTED, where,
                "the host says more than this backend knows: update the backend");
  }
  *out = to;
  return BITNET_OK;
}

void hand_over(const void* value, uint32_t size, void* out) {
  uint32_t room;
  memcpy(&room, out, sizeof room);
  memcpy(out, value, room < size ? room : size);
  if (room >= sizeof room) memcpy(out, &room, sizeof room);
}

void hand_over_one(const void* value, uint32_t size, void* out, uint32_t stride, uint32_t n,
                   uint32_t room) {
  if (n >= room) return;
  char* to = (char*)out + (uint64_t)n * stride;
  memset(to, 0, stride);
  memcpy(to, value, stride < size ? stride : size);
  memcpy(to, &stride, sizeof stride);
}

bool product(uint64_t a, uint64_t b, uint64_t* out) {
  return !__builtin_mul_overflow(a, b, out);
}

bool is_cancelled(const struct bitnet_backend* b, uint64_t token) {
  return token != 0 && b->host->cancelled(b->host->self, token) != 0;
}

static bool is_named(bitnet_str list, const char* id) {
  const size_t length = strlen(id);
  for (uint64_t begin = 0, end; begin < list.size; begin = end + 1) {
    for (end = begin; end < list.size && list.data[end] != ',';) ++end;
    if (end - begin == length && memcmp(list.data + begin, id, length) == 0) return true;
  }
  return false;
}

uint32_t find_kernel(const struct bitnet_backend* b, uint32_t op, uint32_t format) {
  for (uint32_t i = 0; i < n_kernels; ++i)
    if (!b->disabled[i] && all_kernels[i].op == op && all_kernels[i].format == format) return i;
  return n_kernels;
}

/* The slots' types are the contract's, whether they need all of their parameters or not. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static bitnet_status check_index(uint32_t index, const char* where, bitnet_error* err) {
  if (index == 0) return BITNET_OK;
  return fail(err, BITNET_INVALID_ARGUMENT, where, "there is only device 0, not %u", index);
}

static bitnet_status info(bitnet_backend* self, bitnet_backend_info* out, bitnet_error* err) {
  NEED(out);
  const bitnet_backend_info value = {
      .struct_size = sizeof value,
      .life_flags = BITNET_LIFE_THREAD_FREE | BITNET_LIFE_UNLOADABLE | BITNET_LIFE_HOT_SWAP,
      .name = STR(NAME),
      .version = STR(VERSION),
      .vendor = STR(VENDOR),
      .license = STR(LICENSE),
      .driver = STR(""),
  };
  hand_over(&value, sizeof value, out);
  return BITNET_OK;
}

static void close(bitnet_backend* self) {
  free(self);
}

static bitnet_status device_count(bitnet_backend* self, uint32_t* out, bitnet_error* err) {
  NEED(out);
  *out = 1;
  return BITNET_OK;
}

static bitnet_status device_info(bitnet_backend* self, uint32_t index, bitnet_device_info* out,
                                 bitnet_error* err) {
  NEED(out);
  const bitnet_status status = check_index(index, __func__, err);
  if (status != BITNET_OK) return status;
  const bitnet_device_info value = {
      .struct_size = sizeof value,
      .device_class = BITNET_DEVICE_CPU,
      .name = "plain C",
      .compute_units = 1,
      .buffer_alignment_bytes = buffer_alignment,
      .kv_dtypes = 1u << BITNET_DTYPE_F32 | 1u << BITNET_DTYPE_F16 | 1u << BITNET_DTYPE_Q8_0 |
                   1u << BITNET_DTYPE_Q4_0,
      .attention_flags = attention_flags,
  };
  hand_over(&value, sizeof value, out);
  return BITNET_OK;
}

static bitnet_status kernels(bitnet_backend* self, uint32_t index, bitnet_kernel_info* out,
                             uint32_t out_size, uint32_t* count, bitnet_error* err) {
  NEED(count);
  bitnet_status status = check_index(index, __func__, err);
  if (status == BITNET_OK && *count != 0 && (!out || out_size < sizeof out->struct_size))
    status = fail(err, BITNET_INVALID_ARGUMENT, __func__, "no room for %u kernels", *count);
  if (status != BITNET_OK) return status;
  const uint32_t room = *count;
  *count = 0;
  for (uint32_t i = 0; i < n_kernels; ++i) {
    if (self->disabled[i]) continue;
    bitnet_kernel_info value = {
        .op = all_kernels[i].op,
        .format = all_kernels[i].format,
        .level = BITNET_LEVEL_REFERENCE,
        .exact = all_kernels[i].exact,
        .precision = BITNET_PRECISION_F32,
    };
    snprintf(value.id, sizeof value.id, "%s", all_kernels[i].id);
    hand_over_one(&value, sizeof value, out, out_size, (*count)++, room);
  }
  return BITNET_OK;
}

static bitnet_status device_open(bitnet_backend* self, const bitnet_device_request* request,
                                 bitnet_device** out, bitnet_error* err) {
  NEED(out);
  bitnet_device_request r;
  bitnet_status status = receive(request, sizeof r, &r, sizeof r, __func__, err);
  if (status == BITNET_OK) status = check_index(r.index, __func__, err);
  if (status == BITNET_OK && r.memory_bytes != 0)
    return fail(err, BITNET_UNSUPPORTED, __func__, "this device does not count what it holds");
  if (status == BITNET_OK && is_cancelled(self, r.cancel_token))
    return fail(err, BITNET_CANCELLED, __func__, "cancelled");
  if (status == BITNET_OK) *out = &self->device;
  return status;
}

static void device_close(bitnet_device* device) {}

static bitnet_status quiesce(bitnet_backend* self, uint64_t timeout_ns, bitnet_error* err) {
  return BITNET_OK; /* no thread, and every step has ended when queue_submit returns */
}

static const bitnet_backend_v0 slots = {
    .info = info,
    .close = close,
    .device_count = device_count,
    .device_info = device_info,
    .kernels = kernels,
    .device_open = device_open,
    .device_close = device_close,
    .buffer_create = buffer_create,
    .buffer_map = buffer_map,
    .buffer_destroy = buffer_destroy,
    .weight_plan = weight_plan,
    .weights_create = weights_create,
    .weight_write = weight_write,
    .weight_alias = weight_alias,
    .weight_seal = weight_seal,
    .weights_destroy = weights_destroy,
    .graph_query = graph_query,
    .program_build = program_build,
    .program_bind = program_bind,
    .binding_prepare = binding_prepare,
    .binding_destroy = binding_destroy,
    .program_stats = program_stats,
    .program_destroy = program_destroy,
    .kv_pool_create = kv_pool_create,
    .kv_copy = kv_copy,
    .kv_export = kv_export,
    .kv_import = kv_import,
    .kv_pool_destroy = kv_pool_destroy,
    .queue_create = queue_create,
    .queue_submit = queue_submit,
    .queue_wait = queue_wait,
    .queue_poll = queue_poll,
    .queue_destroy = queue_destroy,
    .quiesce = quiesce,
};

/* Agrees on a minor, and fills as much of the host's table as the host says that it understands. */
BITNET_BACKEND_EXPORT bitnet_status BITNET_BACKEND_ENTRY(const bitnet_host_v0* host,
                                                         const bitnet_open_request* request,
                                                         bitnet_backend_v0* out,
                                                         bitnet_error* err) {
  const uint32_t room = out ? out->struct_size : 0, newest = BITNET_ABI_MINOR;
  const uint32_t oldest = BITNET_ABI_OLDEST_MINOR;
  /* A host that cannot call `close` could not end what this call opens. */
  if (room < offsetof(bitnet_backend_v0, device_count))
    return fail(err, BITNET_INVALID_ARGUMENT, "entry",
                "the host's table is too short: it has no `close`; update the host");
  out->need_minor_min = oldest;
  out->need_minor_max = newest;
  if (!host || !BITNET_HAS_FIELD(host, bitnet_host_v0, cancelled) || !host->cancelled || !request ||
      !BITNET_HAS_FIELD(request, bitnet_open_request, params) ||
      (request->n_params != 0 && !request->params))
    return fail(err, BITNET_INVALID_ARGUMENT, "entry",
                "the host's services or its request are missing or too short");
  if (request->abi_minor_min > newest || request->abi_minor_max < oldest)
    return fail(err, BITNET_INCOMPATIBLE, "entry",
                "this backend speaks ABI %u.%u to %u.%u, the host %u.%u to %u.%u: update the older "
                "of the two",
                BITNET_ABI_MAJOR, oldest, BITNET_ABI_MAJOR, newest, BITNET_ABI_MAJOR,
                request->abi_minor_min, BITNET_ABI_MAJOR, request->abi_minor_max);
  bitnet_backend* self = calloc(1, sizeof *self);
  if (!self) return fail(err, BITNET_OUT_OF_MEMORY, "entry", "out of memory");
  self->host = host;
  self->device.backend = self;
  for (uint32_t p = 0; p < request->n_params; ++p) {
    const bitnet_str key = request->params[p].key;
    if (key.size != strlen("disable") || memcmp(key.data, "disable", key.size) != 0) continue;
    for (uint32_t i = 0; i < n_kernels; ++i)
      self->disabled[i] = is_named(request->params[p].value, all_kernels[i].id);
  }
  bitnet_backend_v0 table = slots;
  table.struct_size = room;
  table.filled_size = room < sizeof table ? room : sizeof table;
  table.abi_minor = request->abi_minor_max < newest ? request->abi_minor_max : newest;
  table.need_minor_min = oldest;
  table.need_minor_max = newest;
  table.self = self;
  memcpy(out, &table, table.filled_size);
  return BITNET_OK;
}
