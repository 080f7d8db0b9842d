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
 * Each slot has the tags of base.h and a line `Fails:`, the statuses that it has reasons of its own
 * for. Any slot that returns a status may also fail with BITNET_INVALID_ARGUMENT (what contradicts
 * itself), BITNET_UNSUPPORTED (what it does not know), BITNET_OUT_OF_MEMORY or BITNET_INTERNAL.
 *
 * Objects form a tree: backend > device > (buffer, weights, kv pool, program > binding, queue). The
 * core destroys children first, and nothing that a running step uses. Every status-returning slot
 * fills `err` when it fails. [device] is one opened handle, of which others may be open.
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
typedef struct bitnet_queue bitnet_queue;

#define BITNET_PURPOSE_LOAD 1u
#define BITNET_PURPOSE_PROBE 2u /* enumerate only, and allocate nothing beyond that */
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
  uint64_t host_features[4]; /* the host writes 0: no feature is defined (ADR 0055) */
  uint32_t generation;       /* counts loads of this backend in this process, from 1 */
  uint32_t n_params;
  const bitnet_param* params; /* borrowed for the call */
} bitnet_open_request;

typedef struct bitnet_device_request {
  uint32_t struct_size;
  uint32_t index;
  /* Most bytes that everything made on this device may take at once, the plugin's caches included;
   * memory of weight_alias does not count. 0: no limit. What would exceed it fails with
   * BITNET_OUT_OF_MEMORY or BITNET_OUT_OF_DEVICE_MEMORY. A plugin that does not count memory
   * answers BITNET_UNSUPPORTED. */
  uint64_t memory_bytes;
  uint64_t cancel_token; /* for host->cancelled while it opens; 0 = cannot be cancelled */
} bitnet_device_request;

#define BITNET_BUFFER_HOST_WRITES 1u /* facts of steps, values that come in */
#define BITNET_BUFFER_HOST_READS 2u  /* values that go out                  */

typedef struct bitnet_buffer_request {
  uint32_t struct_size;
  uint32_t usage; /* BITNET_BUFFER_*: flags, of which these are hints */
  uint64_t bytes; /* > 0 */
  /* 0, or a power of two: the host address is a multiple of it and of the device's
   * buffer_alignment_bytes. BITNET_UNSUPPORTED: the plugin cannot provide it. */
  uint64_t alignment_bytes;
} bitnet_buffer_request;

typedef struct bitnet_weights_request {
  uint32_t struct_size;
  uint32_t desc_size; /* sizeof(bitnet_tensor_desc) as the host knows it */
  uint32_t n;
  uint32_t reserved_0;
  const bitnet_tensor_desc* descs; /* (n) */
  uint64_t cancel_token;           /* for host->cancelled while one is sealed or packed */
} bitnet_weights_request;

typedef struct bitnet_queue_request {
  uint32_t struct_size;
  int32_t priority; /* a hint: above 0 before other queues of the device, below 0 after them */
} bitnet_queue_request;

/* What an optional interface begins with, such as those of packed.h and tuning.h. It is valid until
 * `close`; a newer version only appends slots. */
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
  uint64_t features_used[4]; /* set by the plugin to 0: no feature is defined (ADR 0055) */
  bitnet_backend* self; /* first argument below; NULL is allowed */

  /* ---- required ---- */

  /* Fills *out. Fails: never, if struct_size is large enough. [any] [instant] */
  bitnet_status (*info)(bitnet_backend* self, bitnet_backend_info* out, bitnet_error* err);

  /* Ends the backend; every child is gone already, and no other call runs. No callback comes
   * afterwards. Fails: cannot. [any], beside no other call, [short] */
  void (*close)(bitnet_backend* self);

  /* Writes the number of usable devices; 0 is a valid answer. When there is none for a reason that
   * the user can act on, returns BITNET_UNAVAILABLE and says it. May load a driver.
   * Fails: BITNET_UNAVAILABLE. [any] [long] */
  bitnet_status (*device_count)(bitnet_backend* self, uint32_t* out, bitnet_error* err);

  /* Describes device `index`.
   * Fails: BITNET_INVALID_ARGUMENT past the last device. [any] [short] */
  bitnet_status (*device_info)(bitnet_backend* self, uint32_t index, bitnet_device_info* out,
                               bitnet_error* err);

  /* Lists the kernels of device `index`: *count in = capacity of out, *count out = how many there
   * are; at most capacity are written, each out_size bytes, what the plugin does not know of one
   * being 0. out may be NULL when the capacity is 0. Of several for an op and format the first that
   * takes the shapes is the one that runs.
   * Fails: BITNET_INVALID_ARGUMENT past the last device. [any] [short] */
  bitnet_status (*kernels)(bitnet_backend* self, uint32_t index, bitnet_kernel_info* out,
                           uint32_t out_size, uint32_t* count, bitnet_error* err);

  /* Opens a device. Fails: BITNET_INVALID_ARGUMENT past the last device, BITNET_UNAVAILABLE,
   * BITNET_OUT_OF_DEVICE_MEMORY, BITNET_CANCELLED. [any] [long] */
  bitnet_status (*device_open)(bitnet_backend* self, const bitnet_device_request* request,
                               bitnet_device** out, bitnet_error* err);
  /* Fails: cannot. [device] [short] */
  void (*device_close)(bitnet_device* device);

  /* Memory that host and device both see, zeroed. Fails: BITNET_OUT_OF_DEVICE_MEMORY,
   * BITNET_UNSUPPORTED for an alignment that it cannot give. [device] [short] */
  bitnet_status (*buffer_create)(bitnet_device* device, const bitnet_buffer_request* request,
                                 bitnet_buffer** out, bitnet_error* err);
  /* The host address of a buffer, the same until buffer_destroy. What the core writes before
   * queue_submit the step sees; what the step wrote the core sees once the timeline has reached its
   * value.
   * Fails: never, for a buffer that there is. [any] [instant] */
  bitnet_status (*buffer_map)(bitnet_buffer* buffer, void** out, bitnet_error* err);
  /* Fails: cannot. [device] [short] */
  void (*buffer_destroy)(bitnet_buffer* buffer);

  /* Says how a tensor would be stored.
   * Fails: BITNET_UNSUPPORTED if its format or shape cannot be. [any] [instant] */
  bitnet_status (*weight_plan)(bitnet_device* device, const bitnet_tensor_desc* desc,
                               bitnet_weight_plan* out, bitnet_error* err);
  /* Makes room for tensors. Fails: BITNET_UNSUPPORTED as weight_plan, BITNET_OUT_OF_DEVICE_MEMORY.
   * [device] [short] */
  bitnet_status (*weights_create)(bitnet_device* device, const bitnet_weights_request* request,
                                  bitnet_weights** out, bitnet_error* err);
  /* Streams bytes of tensor `index` in its described format, offsets ascending without gaps.
   * `data` is borrowed for the call.
   * Fails: BITNET_INVALID_ARGUMENT for a gap, past the end or after the seal. [device] [long] */
  bitnet_status (*weight_write)(bitnet_weights* weights, uint32_t index, uint64_t offset,
                                const void* data, uint64_t bytes, bitnet_error* err);
  /* Hands over the caller's memory in place of weight_write, where the plan accepts it. It stays
   * readable and unchanged until weights_destroy.
   * Fails: BITNET_UNSUPPORTED where the plan does not accept it. [device] [short] */
  bitnet_status (*weight_alias)(bitnet_weights* weights, uint32_t index, const void* data,
                                uint64_t bytes, bitnet_error* err);
  /* Ends the stream of tensor `index` and packs it. Fails: BITNET_INVALID_ARGUMENT if bytes are
   * missing, BITNET_OUT_OF_DEVICE_MEMORY, BITNET_CANCELLED. [device] [long] */
  bitnet_status (*weight_seal)(bitnet_weights* weights, uint32_t index, bitnet_error* err);
  /* Fails: cannot. [device] [short] */
  void (*weights_destroy)(bitnet_weights* weights);

  /* Says of each op of a graph how it would run, levels (n_ops) of BITNET_LEVEL_*, and what that
   * needs. Level NONE: an op whose id is not known, or that has no kernel for the format of its
   * weight; a composite of level NONE is run through its body. If a primitive has level NONE, the
   * graph needs another device: nothing else is looked at, and *out stays as it was. Else, and with
   * BITNET_OK, program_build takes this graph with these options over weights so described; what it
   * would refuse, unknown dtypes, dimensions, roles, attributes and formats among it, is refused
   * here in the same words. Fails: as program_build, but for memory. [any] [short] */
  bitnet_status (*graph_query)(bitnet_device* device, const bitnet_query_request* request,
                               uint32_t* levels, bitnet_graph_estimate* out, bitnet_error* err);

  /* Compiles a graph over sealed weights. Fails: BITNET_UNSUPPORTED, BITNET_OUT_OF_DEVICE_MEMORY,
   * BITNET_CANCELLED; there is no program then. [device] [long] */
  bitnet_status (*program_build)(bitnet_device* device, const bitnet_build_request* request,
                                 bitnet_program** out, bitnet_error* err);
  /* Names what the ports of the graph stand for. A program may have several bindings, with steps of
   * each under way at the same time. Fails: BITNET_INVALID_ARGUMENT for a part that does not fit
   * its port, BITNET_OUT_OF_DEVICE_MEMORY. [device] [short] */
  bitnet_status (*program_bind)(bitnet_program* program, const bitnet_bind_request* request,
                                bitnet_binding** out, bitnet_error* err);
  /* Gets ready for steps of up to so many tokens, outputs and sequences, so that the first one is
   * not slow. Steps of other sizes run all the same.
   * Fails: BITNET_INVALID_ARGUMENT past the program's bounds, BITNET_OUT_OF_DEVICE_MEMORY,
   * BITNET_CANCELLED; the binding is then as good as before. [device] [long] */
  bitnet_status (*binding_prepare)(bitnet_binding* binding, const bitnet_prepare_request* request,
                                   bitnet_error* err);
  /* Waits for the steps of the binding, then destroys it. Fails: cannot. [device] [short], once they
   * are done */
  void (*binding_destroy)(bitnet_binding* binding);
  /* What ran so far, of all bindings; the capacity rule of `kernels`. Fails: never, for a program
   * that there is. [any] [instant] */
  bitnet_status (*program_stats)(bitnet_program* program, bitnet_kernel_stat* out,
                                 uint32_t out_size, uint32_t* count, bitnet_error* err);
  /* Fails: cannot. [device] [short] */
  void (*program_destroy)(bitnet_program* program);

  /* Storage for KV blocks; the logic (tables, sharing, eviction) is the core's. Steps of several
   * queues may use one pool at a time; the core lets none write a block that another looks at.
   * Fails: BITNET_UNSUPPORTED for a dtype that device_info does not have,
   * BITNET_OUT_OF_DEVICE_MEMORY. [device] [short] */
  bitnet_status (*kv_pool_create)(bitnet_device* device, const bitnet_kv_config* config,
                                  bitnet_kv_pool** out, bitnet_error* err);
  /* Copies block from[i] to to[i], or a state to a state, for each of n; no block that is written
   * is also read, or written twice. These three take their turn on the queue like a step, and may
   * return before they are done; the timeline then reaches `signal`. Lists of blocks are borrowed
   * for the call. Other blocks do not change. Fails: BITNET_INVALID_ARGUMENT for a block outside of
   * the pool, for a state named with a block, and for a signal that the timeline has reached;
   * nothing is copied then, and the timeline stays. [queue] [short] */
  bitnet_status (*kv_copy)(bitnet_queue* queue, bitnet_kv_pool* pool, const uint32_t* from,
                           const uint32_t* to, uint32_t n, uint64_t signal, bitnet_error* err);
  /* Writes n blocks, one after the other in the canonical layout, into `bytes` bytes: exactly what
   * they take. `out` is the caller's to read, or to take back, once the timeline has reached
   * `signal`. Fails: as kv_copy, and for other `bytes`. [queue] [short] */
  bitnet_status (*kv_export)(bitnet_queue* queue, bitnet_kv_pool* pool, const uint32_t* blocks,
                             uint32_t n, void* out, uint64_t bytes, uint64_t signal,
                             bitnet_error* err);
  /* Reads n blocks from `data`, which stays unchanged until the timeline has reached `signal`. No
   * block is named twice. Fails: as kv_export. [queue] [short] */
  bitnet_status (*kv_import)(bitnet_queue* queue, bitnet_kv_pool* pool, const uint32_t* blocks,
                             uint32_t n, const void* data, uint64_t bytes, uint64_t signal,
                             bitnet_error* err);
  /* Fails: cannot. [device] [short] */
  void (*kv_pool_destroy)(bitnet_kv_pool* pool);

  /* A queue does what it is given in order; its timeline starts at 0.
   * Fails: BITNET_OUT_OF_DEVICE_MEMORY. [device] [short] */
  bitnet_status (*queue_create)(bitnet_device* device, const bitnet_queue_request* request,
                                bitnet_queue** out, bitnet_error* err);
  /* Starts a step; may return before it is done. What fails here, or is cancelled
   * (BITNET_CANCELLED), leaves the timeline where it was and the queue fit for more; what the step
   * would have written, logits, slots and states, may then be anything, and nothing else is
   * touched: older slots of a block that it writes keep each byte.
   * Fails: BITNET_INVALID_ARGUMENT past the program's bounds and for a signal that the timeline has
   * reached, BITNET_CANCELLED, BITNET_DEVICE_LOST. [queue] [long] */
  bitnet_status (*queue_submit)(bitnet_queue* queue, const bitnet_step* step, bitnet_error* err);
  /* Waits until the timeline has reached `value`; BITNET_TIMEOUT if it has not in time, at once if
   * nothing that was submitted reaches it. A step that failed after queue_submit is reported here,
   * for its value and for every later one: the queue is then good for queue_destroy only.
   * Fails: BITNET_TIMEOUT, BITNET_DEVICE_LOST, or with what the step failed with. [any], up to
   * timeout_ns */
  bitnet_status (*queue_wait)(bitnet_queue* queue, uint64_t value, uint64_t timeout_ns,
                              bitnet_error* err);
  /* Writes the timeline's value. Fails: BITNET_DEVICE_LOST. [any] [instant] */
  bitnet_status (*queue_poll)(bitnet_queue* queue, uint64_t* out, bitnet_error* err);
  /* Waits for all submitted work, then destroys the queue. Fails: cannot. [device] [short], once it
   * is done */
  void (*queue_destroy)(bitnet_queue* queue);

  /* After BITNET_OK no plugin thread runs, no callback comes and no device work is pending, until
   * the next call that starts some. Handles stay valid.
   * Fails: BITNET_TIMEOUT. [any], beside no other call, up to timeout_ns */
  bitnet_status (*quiesce)(bitnet_backend* self, uint64_t timeout_ns, bitnet_error* err);

  /* ---- optional from here: a NULL slot answers BITNET_UNSUPPORTED ---- */

  /* NULL if the plugin does not offer that interface in that version or newer. Fails: NULL.
   * [any] [instant] */
  const bitnet_interface_header* (*query_interface)(bitnet_backend* self, bitnet_str name,
                                                    uint32_t min_version);
  /* What the device is doing; members that the plugin cannot fill are left out of `known`.
   * Fails: BITNET_UNSUPPORTED. [any] [short] */
  bitnet_status (*device_status)(bitnet_device* device, bitnet_device_status* out,
                                 bitnet_error* err);
} bitnet_backend_v0;

/* The exported entry: negotiates the minor and fills the table. Pure and cheap, callable many times
 * per process: no thread, driver, signal handler or atexit hook. `host` stays valid until `close`.
 * Fails: BITNET_INCOMPATIBLE, with need_minor_* filled, when the ranges do not meet.
 * [any] [instant] */
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
