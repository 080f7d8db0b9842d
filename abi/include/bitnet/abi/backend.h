/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* bitnet/abi/backend.h - the one contract between libbitnet and a backend plugin.
 *
 * A plugin is a shared object that exports exactly one symbol, BITNET_BACKEND_ENTRY, and carries an
 * ELF note (note.h). Its name holds the ABI major, so another major is a symbol that is not there.
 * The host allocates and zeroes the table; the plugin fills it.
 *
 * A plugin never throws, longjmps, aborts, exits, prints, or changes signal handlers, locale,
 * environment, working directory or floating-point modes.
 *
 * Objects form a tree: backend > device > (buffer, weights, kv pool, program, queue). The core
 * destroys children first. Every status-returning slot fills `err` when it fails.
 */
#ifndef BITNET_ABI_BACKEND_H
#define BITNET_ABI_BACKEND_H

#include "bitnet/abi/base.h"
#include "bitnet/abi/host.h"
#include "bitnet/abi/info.h"
#include "bitnet/abi/program.h"
#include "bitnet/abi/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bitnet_backend bitnet_backend; /* opaque handles, all owned by the plugin */
typedef struct bitnet_device bitnet_device;
typedef struct bitnet_weights bitnet_weights;
typedef struct bitnet_queue bitnet_queue;

#define BITNET_PURPOSE_LOAD 1u
#define BITNET_PURPOSE_PROBE 2u /* enumerate only: nothing bigger than that needs */
#define BITNET_PURPOSE_CONFORMANCE 3u

/* A setting, e.g. {"isa", "avx2"} from BITNET_CPU_ISA. Unknown keys are ignored. */
typedef struct bitnet_param {
  bitnet_str key;
  bitnet_str value;
} bitnet_param;

typedef struct bitnet_open_request {
  uint32_t struct_size;
  uint32_t purpose;       /* BITNET_PURPOSE_* */
  uint32_t abi_minor_min; /* the minors that the host speaks */
  uint32_t abi_minor_max;
  uint64_t host_features[4]; /* none defined yet */
  uint32_t generation;       /* counts loads of this backend in this process, from 1 */
  uint32_t n_params;
  const bitnet_param* params; /* borrowed for the call */
} bitnet_open_request;

/* What an optional interface begins with, such as those of packed.h and tuning.h. */
typedef struct bitnet_interface_header {
  uint32_t struct_size;
  uint32_t version;
} bitnet_interface_header;

typedef struct bitnet_backend_v0 {
  uint32_t struct_size; /* set by the host: bytes it understands; the plugin writes no more      */
  uint32_t filled_size; /* set by the plugin: bytes it filled                                    */
  uint32_t abi_minor;   /* set by the plugin: chosen from the request's range                    */
  uint32_t need_minor_min; /* set by the plugin, also on refusal: what it could speak            */
  uint32_t need_minor_max;
  uint32_t reserved_0;
  uint64_t features_used[4];
  bitnet_backend* self; /* first argument below; NULL is allowed */

  /* ---- required ---- */

  /* Fills *out. [any] [instant] */
  bitnet_status (*info)(bitnet_backend* self, bitnet_backend_info* out, bitnet_error* err);

  /* Ends the backend; every child is gone already. No callback comes afterwards. [short] */
  void (*close)(bitnet_backend* self);

  /* Writes the number of usable devices; 0 is a valid answer. When there is none for a reason that
   * the user can act on, returns BITNET_UNAVAILABLE and says it. May load a driver. */
  bitnet_status (*device_count)(bitnet_backend* self, uint32_t* out, bitnet_error* err);

  /* Describes device `index`. [any] [short] */
  bitnet_status (*device_info)(bitnet_backend* self, uint32_t index, bitnet_device_info* out,
                               bitnet_error* err);

  /* Lists the kernels of device `index`: *count in = capacity of out, *count out = how many there
   * are; at most capacity are written. out may be NULL when the capacity is 0. Of several for an op
   * and format the first is the one that runs. [any] [short] */
  bitnet_status (*kernels)(bitnet_backend* self, uint32_t index, bitnet_kernel_info* out,
                           uint32_t out_size, uint32_t* count, bitnet_error* err);

  /* Opens device `index`. */
  bitnet_status (*device_open)(bitnet_backend* self, uint32_t index, bitnet_device** out,
                               bitnet_error* err);
  void (*device_close)(bitnet_device* device);

  /* Memory that host and device both see, zeroed. [device] */
  bitnet_status (*buffer_create)(bitnet_device* device, uint64_t bytes, bitnet_buffer** out,
                                 bitnet_error* err);
  /* The host address of a buffer, the same until buffer_destroy. The core writes only while no step
   * that uses the buffer runs, and reads after that step's fence. [any] [instant] */
  bitnet_status (*buffer_map)(bitnet_buffer* buffer, void** out, bitnet_error* err);
  void (*buffer_destroy)(bitnet_buffer* buffer);

  /* Says how a tensor would be stored. BITNET_UNSUPPORTED if its format or shape cannot be. */
  bitnet_status (*weight_plan)(bitnet_device* device, const bitnet_tensor_desc* desc,
                               bitnet_weight_plan* out, bitnet_error* err);
  /* Makes room for n tensors, described by n consecutive descs (each desc_size bytes). [device] */
  bitnet_status (*weights_create)(bitnet_device* device, const bitnet_tensor_desc* descs,
                                  uint32_t desc_size, uint32_t n, bitnet_weights** out,
                                  bitnet_error* err);
  /* Streams bytes of tensor `index` in its described format, offsets ascending without gaps.
   * `data` is borrowed for the call. [device] */
  bitnet_status (*weight_write)(bitnet_weights* weights, uint32_t index, uint64_t offset,
                                const void* data, uint64_t bytes, bitnet_error* err);
  /* Hands over the caller's memory in place of weight_write, where the plan accepts it. It stays
   * readable and unchanged until weights_destroy. [device] */
  bitnet_status (*weight_alias)(bitnet_weights* weights, uint32_t index, const void* data,
                                uint64_t bytes, bitnet_error* err);
  /* Ends the stream of tensor `index` and packs it; fails if bytes are missing. */
  bitnet_status (*weight_seal)(bitnet_weights* weights, uint32_t index, bitnet_error* err);
  void (*weights_destroy)(bitnet_weights* weights);

  /* Answers for each of n ops (each op_size bytes) at levels[i] with BITNET_LEVEL_*; `formats[i]`
   * is the format of the op's weight 0 or 0. A composite answered NONE is run through its body.
   * [any] */
  bitnet_status (*op_query)(bitnet_device* device, const bitnet_op* ops, uint32_t op_size,
                            const uint32_t* formats, uint32_t n, uint32_t* levels,
                            bitnet_error* err);

  /* Compiles a graph over sealed weights. The weights outlive the program. [device] [long] */
  bitnet_status (*program_build)(bitnet_device* device, const bitnet_graph* graph,
                                 bitnet_weights* weights, const bitnet_program_options* options,
                                 bitnet_program** out, bitnet_error* err);
  /* What a step of `n_tokens` needs beyond weights and KV. [any] */
  bitnet_status (*program_estimate)(bitnet_program* program, uint32_t n_tokens,
                                    bitnet_program_estimate* out, bitnet_error* err);
  /* Gets ready for steps of up to n_tokens, so that the first one is not slow. [device] */
  bitnet_status (*program_prepare)(bitnet_program* program, uint32_t n_tokens, bitnet_error* err);
  /* Names the step buffers; once per program, before the first step. [device] */
  bitnet_status (*program_bind)(bitnet_program* program, const bitnet_step_buffers* buffers,
                                bitnet_error* err);
  /* What ran so far; the capacity rule of `kernels`. [any] */
  bitnet_status (*program_stats)(bitnet_program* program, bitnet_kernel_stat* out,
                                 uint32_t out_size, uint32_t* count, bitnet_error* err);
  void (*program_destroy)(bitnet_program* program);

  /* Storage for KV blocks; the logic (tables, sharing, eviction) is the core's. Steps of several
   * queues may use one pool at a time; the core lets none write a block that another looks at.
   * [device] */
  bitnet_status (*kv_pool_create)(bitnet_device* device, const bitnet_kv_config* config,
                                  bitnet_kv_pool** out, bitnet_error* err);
  /* Copies blocks from[i] to to[i]. [queue] */
  bitnet_status (*kv_copy_blocks)(bitnet_kv_pool* pool, const uint32_t* from, const uint32_t* to,
                                  uint32_t n, bitnet_error* err);
  /* Writes block `block` in the canonical layout; bytes must be its exact size. [queue] */
  bitnet_status (*kv_export)(bitnet_kv_pool* pool, uint32_t block, void* out, uint64_t bytes,
                             bitnet_error* err);
  bitnet_status (*kv_import)(bitnet_kv_pool* pool, uint32_t block, const void* data, uint64_t bytes,
                             bitnet_error* err);
  void (*kv_pool_destroy)(bitnet_kv_pool* pool);

  /* A queue runs steps in order; its timeline starts at 0. [device] */
  bitnet_status (*queue_create)(bitnet_device* device, bitnet_queue** out, bitnet_error* err);
  /* Starts a step; may return before it is done. On failure the timeline does not move. [queue] */
  bitnet_status (*queue_submit)(bitnet_queue* queue, const bitnet_step* step, bitnet_error* err);
  /* Waits until the timeline has reached `value`; a failed step is reported here. */
  bitnet_status (*queue_wait)(bitnet_queue* queue, uint64_t value, uint64_t timeout_ns,
                              bitnet_error* err);
  /* Writes the timeline's value. [any] [instant] */
  bitnet_status (*queue_poll)(bitnet_queue* queue, uint64_t* out, bitnet_error* err);
  void (*queue_destroy)(bitnet_queue* queue);

  /* After BITNET_OK no plugin thread runs, no callback comes, no device work is pending. */
  bitnet_status (*quiesce)(bitnet_backend* self, uint64_t timeout_ns, bitnet_error* err);

  /* ---- optional from here: a NULL slot answers BITNET_UNSUPPORTED ---- */

  /* NULL if the plugin does not offer that interface in that version or newer. [any] */
  const bitnet_interface_header* (*query_interface)(bitnet_backend* self, bitnet_str name,
                                                    uint32_t min_version);
} bitnet_backend_v0;

/* The exported entry: negotiates the minor and fills the table. Pure and cheap, callable many times
 * per process: no thread, driver, signal handler or atexit hook. Returns BITNET_INCOMPATIBLE, with
 * need_minor_* filled, when the ranges do not meet. `host` stays valid until `close`. [any] */
typedef bitnet_status (*bitnet_backend_entry)(const bitnet_host_v0* host,
                                              const bitnet_open_request* request,
                                              bitnet_backend_v0* out, bitnet_error* err);
#define BITNET_BACKEND_ENTRY bitnet_backend_abi0
#define BITNET_BACKEND_ENTRY_NAME "bitnet_backend_abi0"
#define BITNET_BACKEND_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
}
#endif

#endif /* BITNET_ABI_BACKEND_H */
