/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest backend: it loads, has an identity, and has no device. Copy it to start your own.
 * The contract is bitnet/abi/backend.h; plugins/sdk saves C++ authors most of what is below. */
#include <string.h>

#include "bitnet/abi/backend.h"
#include "bitnet/abi/note.h"

#define NAME "null"
#define VERSION "0.1.0"
#define VENDOR "org.bitnet"
#define LICENSE "Apache-2.0"

/* Its identity, readable before a byte of the library runs. */
BITNET_BACKEND_NOTE(NAME, VERSION, VENDOR, LICENSE,
                    BITNET_NOTE_FIELD("class", "other")
                        BITNET_NOTE_FIELD("flags", "hot-swap unloadable"))

#define STR(literal) ((bitnet_str){literal, sizeof(literal) - 1})

/* Every failing slot says why; `err` belongs to the caller. */
static bitnet_status fail(bitnet_error* err, bitnet_status code, const char* where,
                          const char* message) {
  if (err && err->struct_size >= sizeof *err) {
    memset(err, 0, sizeof *err);
    err->struct_size = sizeof *err;
    err->code = code;
    strncpy(err->where, where, sizeof err->where - 1);
    strncpy(err->message, message, sizeof err->message - 1);
  }
  return code;
}

#pragma GCC diagnostic ignored "-Wunused-parameter" /* the slots' types are the contract's */

static bitnet_status info(bitnet_backend* self, bitnet_backend_info* out, bitnet_error* err) {
  const bitnet_backend_info me = {
      .struct_size = out->struct_size, /* the host's, which may know a shorter struct */
      .life_flags = BITNET_LIFE_THREAD_FREE | BITNET_LIFE_UNLOADABLE | BITNET_LIFE_HOT_SWAP,
      .name = STR(NAME),
      .version = STR(VERSION),
      .vendor = STR(VENDOR),
      .license = STR(LICENSE),
      .driver = STR(""),
  };
  memcpy(out, &me, out->struct_size < sizeof me ? out->struct_size : sizeof me);
  return BITNET_OK;
}

static void close(bitnet_backend* self) {}

static bitnet_status device_count(bitnet_backend* self, uint32_t* out, bitnet_error* err) {
  *out = 0; /* a valid answer: nothing to compute on */
  return BITNET_OK;
}

/* The other slots need a device, so no correct program calls them; the contract wants them filled.
 */
#define NO_DEVICE(slot, ...)                                                       \
  static bitnet_status slot(__VA_ARGS__, bitnet_error* err) {                      \
    return fail(err, BITNET_UNAVAILABLE, #slot, "the null backend has no device"); \
  }
NO_DEVICE(device_info, bitnet_backend* self, uint32_t index, bitnet_device_info* out)
NO_DEVICE(kernels, bitnet_backend* self, uint32_t index, bitnet_kernel_info* out, uint32_t out_size,
          uint32_t* count)
NO_DEVICE(device_open, bitnet_backend* self, const bitnet_device_request* request,
          bitnet_device** out)
NO_DEVICE(buffer_create, bitnet_device* device, const bitnet_buffer_request* request,
          bitnet_buffer** out)
NO_DEVICE(buffer_map, bitnet_buffer* buffer, void** out)
NO_DEVICE(weight_plan, bitnet_device* device, const bitnet_tensor_desc* desc,
          bitnet_weight_plan* out)
NO_DEVICE(weights_create, bitnet_device* device, const bitnet_weights_request* request,
          bitnet_weights** out)
NO_DEVICE(weight_write, bitnet_weights* weights, uint32_t index, uint64_t offset, const void* data,
          uint64_t bytes)
NO_DEVICE(weight_alias, bitnet_weights* weights, uint32_t index, const void* data, uint64_t bytes)
NO_DEVICE(weight_seal, bitnet_weights* weights, uint32_t index)
NO_DEVICE(graph_query, bitnet_device* device, const bitnet_query_request* request, uint32_t* levels,
          bitnet_graph_estimate* out)
NO_DEVICE(program_build, bitnet_device* device, const bitnet_build_request* request,
          bitnet_program** out)
NO_DEVICE(program_bind, bitnet_program* program, const bitnet_bind_request* request,
          bitnet_binding** out)
NO_DEVICE(binding_prepare, bitnet_binding* binding, const bitnet_prepare_request* request)
NO_DEVICE(program_stats, bitnet_program* program, bitnet_kernel_stat* out, uint32_t out_size,
          uint32_t* count)
NO_DEVICE(kv_pool_create, bitnet_device* device, const bitnet_kv_config* config,
          bitnet_kv_pool** out)
NO_DEVICE(kv_copy, bitnet_queue* queue, bitnet_kv_pool* pool, const uint32_t* from,
          const uint32_t* to, uint32_t n, uint64_t signal)
NO_DEVICE(kv_export, bitnet_queue* queue, bitnet_kv_pool* pool, const uint32_t* blocks, uint32_t n,
          void* out, uint64_t bytes, uint64_t signal)
NO_DEVICE(kv_import, bitnet_queue* queue, bitnet_kv_pool* pool, const uint32_t* blocks, uint32_t n,
          const void* data, uint64_t bytes, uint64_t signal)
NO_DEVICE(queue_create, bitnet_device* device, const bitnet_queue_request* request,
          bitnet_queue** out)
NO_DEVICE(queue_submit, bitnet_queue* queue, const bitnet_step* step)
NO_DEVICE(queue_wait, bitnet_queue* queue, uint64_t value, uint64_t timeout_ns)
NO_DEVICE(queue_poll, bitnet_queue* queue, uint64_t* out)
static void device_close(bitnet_device* device) {}
static void buffer_destroy(bitnet_buffer* buffer) {}
static void weights_destroy(bitnet_weights* weights) {}
static void binding_destroy(bitnet_binding* binding) {}
static void program_destroy(bitnet_program* program) {}
static void kv_pool_destroy(bitnet_kv_pool* pool) {}
static void queue_destroy(bitnet_queue* queue) {}

static bitnet_status quiesce(bitnet_backend* self, uint64_t timeout_ns, bitnet_error* err) {
  return BITNET_OK; /* no thread, no device work */
}

static const bitnet_backend_v0 table = {
    .abi_minor = BITNET_ABI_MINOR,
    .need_minor_min = BITNET_ABI_OLDEST_MINOR,
    .need_minor_max = BITNET_ABI_MINOR,
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

/* The only exported symbol. The host owns *out and says how much of it it understands. */
BITNET_BACKEND_EXPORT bitnet_status BITNET_BACKEND_ENTRY(const bitnet_host_v0* host,
                                                         const bitnet_open_request* request,
                                                         bitnet_backend_v0* out,
                                                         bitnet_error* err) {
  const uint32_t room = out ? out->struct_size : 0;
  const uint32_t bytes = room < sizeof table ? room : (uint32_t)sizeof table;
  if (bytes < offsetof(bitnet_backend_v0, self))
    return fail(err, BITNET_INCOMPATIBLE, "entry", "the host's table is too short to fill");
  out->need_minor_min = BITNET_ABI_OLDEST_MINOR;
  out->need_minor_max = BITNET_ABI_MINOR;
  if (!request || !BITNET_HAS_FIELD(request, bitnet_open_request, abi_minor_max))
    return fail(err, BITNET_INVALID_ARGUMENT, "entry", "the open request is missing or too short");
  if (request->abi_minor_min > BITNET_ABI_MINOR)
    return fail(err, BITNET_INCOMPATIBLE, "entry",
                "the host needs a newer ABI: update the backend");
  if (request->abi_minor_max < BITNET_ABI_OLDEST_MINOR)
    return fail(err, BITNET_INCOMPATIBLE, "entry", "the host speaks an older ABI: update the host");
  memcpy(out, &table, bytes);
  out->struct_size = room;
  out->filled_size = bytes;
  if (request->abi_minor_max < BITNET_ABI_MINOR) out->abi_minor = request->abi_minor_max;
  return BITNET_OK;
}
