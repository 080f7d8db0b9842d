/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* bitnet/abi/backend.h - the one contract between libbitnet and a backend plugin.
 *
 * A plugin is a shared object that exports exactly one symbol, BITNET_BACKEND_ENTRY, and carries an
 * ELF note (note.h). The symbol's name has the ABI major in it, so a plugin of another major lacks
 * the symbol.
 * The host allocates and zeroes the table; the plugin fills it.
 *
 * A plugin never throws, longjmps, aborts, exits, prints, or changes signal handlers, locale,
 * environment, working directory or floating-point modes.
 *
 * Each slot has the tags of base.h and a line `Fails:` with the statuses that are specific to it.
 * Any slot that returns a status may also fail with BITNET_INVALID_ARGUMENT (the arguments are
 * contradictory), BITNET_UNSUPPORTED (an argument has something that the plugin does not know),
 * BITNET_OUT_OF_MEMORY or BITNET_INTERNAL. It fills `err` whenever it fails.
 *
 * Objects form a tree: backend > device > (buffer, weights, kv pool, program > binding, queue). The
 * core destroys children before their parent, and destroys nothing that a running step uses. The
 * tag [device] counts each opened handle by itself; several may be open.
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
#define BITNET_PURPOSE_PROBE 2u /* only enumerate devices; allocate nothing else */
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
  /* Limit in bytes for all objects of this device together, the plugin's caches included; memory
   * of weight_alias does not count. 0: no limit. A call that would exceed the limit fails with
   * BITNET_OUT_OF_MEMORY or BITNET_OUT_OF_DEVICE_MEMORY. A plugin that does not count memory
   * answers BITNET_UNSUPPORTED. */
  uint64_t memory_bytes;
  uint64_t cancel_token; /* for host->cancelled while the device opens; 0 = cannot be cancelled */
} bitnet_device_request;

#define BITNET_BUFFER_HOST_WRITES 1u /* facts of steps, values that come in */
#define BITNET_BUFFER_HOST_READS 2u  /* values that go out                  */

typedef struct bitnet_buffer_request {
  uint32_t struct_size;
  uint32_t usage; /* BITNET_BUFFER_*; these flags are hints */
  uint64_t bytes; /* > 0 */
  /* 0 or a power of two. The host address is a multiple of it and of the device's
   * buffer_alignment_bytes. */
  uint64_t alignment_bytes;
} bitnet_buffer_request;

typedef struct bitnet_weights_request {
  uint32_t struct_size;
  uint32_t desc_size; /* sizeof(bitnet_tensor_desc) as the host knows it */
  uint32_t n;
  uint32_t reserved_0;
  const bitnet_tensor_desc* descs; /* (n) */
  uint64_t cancel_token;           /* for host->cancelled while a tensor is sealed or packed */
} bitnet_weights_request;

typedef struct bitnet_queue_request {
  uint32_t struct_size;
  int32_t priority; /* a hint: above 0 before other queues of the device, below 0 after them */
} bitnet_queue_request;

/* Every optional interface, such as those of packed.h and tuning.h, begins with this header. The
 * interface is valid until `close`; a newer version only appends slots. */
typedef struct bitnet_interface_header {
  uint32_t struct_size;
  uint32_t version;
} bitnet_interface_header;

typedef struct bitnet_backend_v0 {
  uint32_t struct_size; /* set by the host: bytes it understands; the plugin writes no more      */
  uint32_t filled_size; /* set by the plugin: bytes it filled                                    */
  uint32_t abi_minor;   /* set by the plugin: chosen from the request's range                    */
  uint32_t need_minor_min; /* set by the plugin, even if the entry fails: the minors it speaks   */
  uint32_t need_minor_max;
  uint32_t reserved_0;
  uint64_t features_used[4]; /* set by the plugin to 0: no feature is defined (ADR 0055) */
  bitnet_backend* self;      /* first argument below; NULL is allowed */

  /* ---- required ---- */

  /* Fills *out. Fails: never, if struct_size is large enough. [any] [instant] */
  bitnet_status (*info)(bitnet_backend* self, bitnet_backend_info* out, bitnet_error* err);

  /* Ends the backend. The core has destroyed every child before. The plugin makes no callback
   * afterwards. Fails: cannot. [any], beside no other call, [short] */
  void (*close)(bitnet_backend* self);

  /* Writes the number of usable devices; 0 is a valid answer. If there is none for a reason that
   * the user can remove, returns BITNET_UNAVAILABLE and names the reason. May load a driver.
   * Fails: BITNET_UNAVAILABLE. [any] [long] */
  bitnet_status (*device_count)(bitnet_backend* self, uint32_t* out, bitnet_error* err);

  /* Describes device `index`.
   * Fails: BITNET_INVALID_ARGUMENT past the last device. [any] [short] */
  bitnet_status (*device_info)(bitnet_backend* self, uint32_t index, bitnet_device_info* out,
                               bitnet_error* err);

  /* Lists the kernels of device `index`. The capacity rule: *count is the capacity of `out` before
   * the call, and the number of kernels after it; at most the capacity is written. Elements have
   * out_size bytes; members that the plugin does not know are 0. `out` may be NULL if the capacity
   * is 0. If several kernels have the same op and format, the first that supports the shapes runs.
   * Fails: BITNET_INVALID_ARGUMENT past the last device. [any] [short] */
  bitnet_status (*kernels)(bitnet_backend* self, uint32_t index, bitnet_kernel_info* out,
                           uint32_t out_size, uint32_t* count, bitnet_error* err);

  /* Opens a device. Fails: BITNET_INVALID_ARGUMENT past the last device, BITNET_UNAVAILABLE,
   * BITNET_OUT_OF_DEVICE_MEMORY, BITNET_CANCELLED. [any] [long] */
  bitnet_status (*device_open)(bitnet_backend* self, const bitnet_device_request* request,
                               bitnet_device** out, bitnet_error* err);
  /* Fails: cannot. [device] [short] */
  void (*device_close)(bitnet_device* device);

  /* Allocates zeroed memory that host and device can both access.
   * Fails: BITNET_OUT_OF_DEVICE_MEMORY, BITNET_UNSUPPORTED for an alignment that the plugin cannot
   * provide. [device] [short] */
  bitnet_status (*buffer_create)(bitnet_device* device, const bitnet_buffer_request* request,
                                 bitnet_buffer** out, bitnet_error* err);
  /* Writes the host address of a buffer, which stays the same until buffer_destroy. A step reads
   * the data that the core wrote before queue_submit. The core may read the step's results once the
   * timeline has reached the step's value.
   * Fails: never. [any] [instant] */
  bitnet_status (*buffer_map)(bitnet_buffer* buffer, void** out, bitnet_error* err);
  /* Fails: cannot. [device] [short] */
  void (*buffer_destroy)(bitnet_buffer* buffer);

  /* Describes how the device would store a tensor.
   * Fails: BITNET_UNSUPPORTED if it cannot store the tensor's format or shape. [any] [instant] */
  bitnet_status (*weight_plan)(bitnet_device* device, const bitnet_tensor_desc* desc,
                               bitnet_weight_plan* out, bitnet_error* err);
  /* Creates storage for tensors. Fails: BITNET_UNSUPPORTED as weight_plan,
   * BITNET_OUT_OF_DEVICE_MEMORY. [device] [short] */
  bitnet_status (*weights_create)(bitnet_device* device, const bitnet_weights_request* request,
                                  bitnet_weights** out, bitnet_error* err);
  /* Passes the next bytes of tensor `index` in its described format; offsets ascend without gaps.
   * `data` is borrowed for the call.
   * Fails: BITNET_INVALID_ARGUMENT for a gap, past the end or after the seal. [device] [long] */
  bitnet_status (*weight_write)(bitnet_weights* weights, uint32_t index, uint64_t offset,
                                const void* data, uint64_t bytes, bitnet_error* err);
  /* Passes the caller's memory in place of weight_write, if the plan accepts it. The memory stays
   * readable and unchanged until weights_destroy.
   * Fails: BITNET_UNSUPPORTED if the plan does not accept it. [device] [short] */
  bitnet_status (*weight_alias)(bitnet_weights* weights, uint32_t index, const void* data,
                                uint64_t bytes, bitnet_error* err);
  /* Ends the writes of tensor `index` and packs it. Fails: BITNET_INVALID_ARGUMENT if bytes are
   * missing, BITNET_OUT_OF_DEVICE_MEMORY, BITNET_CANCELLED. [device] [long] */
  bitnet_status (*weight_seal)(bitnet_weights* weights, uint32_t index, bitnet_error* err);
  /* Fails: cannot. [device] [short] */
  void (*weights_destroy)(bitnet_weights* weights);

  /* Writes how each op would run (levels[n_ops], BITNET_LEVEL_*), and what memory the graph needs.
   * The level is NONE for an op with an unknown id, and for one without a kernel for the format of
   * its weight. A composite of level NONE runs as its body. If a primitive has level NONE, the
   * graph needs another device: the plugin checks nothing else and leaves *out as it was. Otherwise
   * BITNET_OK means that program_build accepts this graph with these options and weights of these
   * descriptions. graph_query rejects whatever program_build would reject, such as unknown dtypes,
   * dimensions, roles, attributes and formats, with the same message. Fails: as program_build, but
   * not for lack of memory. [any] [short] */
  bitnet_status (*graph_query)(bitnet_device* device, const bitnet_query_request* request,
                               uint32_t* levels, bitnet_graph_estimate* out, bitnet_error* err);

  /* Compiles a graph over sealed weights. If it fails, it leaves no program behind.
   * Fails: BITNET_UNSUPPORTED, BITNET_OUT_OF_DEVICE_MEMORY, BITNET_CANCELLED. [device] [long] */
  bitnet_status (*program_build)(bitnet_device* device, const bitnet_build_request* request,
                                 bitnet_program** out, bitnet_error* err);
  /* Assigns a part of a buffer to each port of the graph. A program may have several bindings,
   * whose steps may run at the same time. Fails: BITNET_INVALID_ARGUMENT for a part that does not
   * fit its port, BITNET_OUT_OF_DEVICE_MEMORY. [device] [short] */
  bitnet_status (*program_bind)(bitnet_program* program, const bitnet_bind_request* request,
                                bitnet_binding** out, bitnet_error* err);
  /* Prepares steps of up to the given numbers of tokens, outputs and sequences, so that the first
   * of them is not slow. Steps of other sizes run, too. If it fails, the binding is as usable as
   * before.
   * Fails: BITNET_INVALID_ARGUMENT past the program's bounds, BITNET_OUT_OF_DEVICE_MEMORY,
   * BITNET_CANCELLED. [device] [long] */
  bitnet_status (*binding_prepare)(bitnet_binding* binding, const bitnet_prepare_request* request,
                                   bitnet_error* err);
  /* Waits for the steps of the binding, then destroys it. Fails: cannot.
   * [device] [short], once they are done */
  void (*binding_destroy)(bitnet_binding* binding);
  /* Lists the kernels that ran so far in steps of all bindings, by the capacity rule of `kernels`.
   * Fails: never. [any] [instant] */
  bitnet_status (*program_stats)(bitnet_program* program, bitnet_kernel_stat* out,
                                 uint32_t out_size, uint32_t* count, bitnet_error* err);
  /* Fails: cannot. [device] [short] */
  void (*program_destroy)(bitnet_program* program);

  /* Creates storage for KV blocks. The core manages the blocks: tables, sharing, eviction. Steps of
   * several queues may use one pool at the same time; the core lets no step write a block that
   * another one accesses.
   * Fails: BITNET_UNSUPPORTED for a dtype that device_info does not list,
   * BITNET_OUT_OF_DEVICE_MEMORY. [device] [short] */
  bitnet_status (*kv_pool_create)(bitnet_device* device, const bitnet_kv_config* config,
                                  bitnet_kv_pool** out, bitnet_error* err);
  /* Copies block from[i] to block to[i], or a state to a state, for each i < n. No block is written
   * twice, or both written and read. kv_copy, kv_export and kv_import run in the order of the queue
   * like a step, and may return before they are done; when they are, the timeline reaches `signal`.
   * Lists of blocks are borrowed for the call. Other blocks do not change.
   * Fails: BITNET_INVALID_ARGUMENT for a block outside of the pool, for a state paired with a
   * block, and for a signal that the timeline has reached; nothing is copied then, and the timeline
   * does not change. [queue] [short] */
  bitnet_status (*kv_copy)(bitnet_queue* queue, bitnet_kv_pool* pool, const uint32_t* from,
                           const uint32_t* to, uint32_t n, uint64_t signal, bitnet_error* err);
  /* Writes n blocks to `out`, one after the other in the canonical layout. `bytes` is exactly their
   * size. The caller may read or free `out` once the timeline has reached `signal`.
   * Fails: as kv_copy, and for another size. [queue] [short] */
  bitnet_status (*kv_export)(bitnet_queue* queue, bitnet_kv_pool* pool, const uint32_t* blocks,
                             uint32_t n, void* out, uint64_t bytes, uint64_t signal,
                             bitnet_error* err);
  /* Reads n blocks from `data`, which stays unchanged until the timeline has reached `signal`. No
   * block is listed twice. Fails: as kv_export. [queue] [short] */
  bitnet_status (*kv_import)(bitnet_queue* queue, bitnet_kv_pool* pool, const uint32_t* blocks,
                             uint32_t n, const void* data, uint64_t bytes, uint64_t signal,
                             bitnet_error* err);
  /* Fails: cannot. [device] [short] */
  void (*kv_pool_destroy)(bitnet_kv_pool* pool);

  /* Creates a queue. It executes its work in order, and its timeline starts at 0.
   * Fails: BITNET_OUT_OF_DEVICE_MEMORY. [device] [short] */
  bitnet_status (*queue_create)(bitnet_device* device, const bitnet_queue_request* request,
                                bitnet_queue** out, bitnet_error* err);
  /* Starts a step; may return before the step is done. If the call fails or is cancelled, the
   * timeline does not change and the queue accepts further work. The logits, slots and states that
   * the step would have written may then have any content. Nothing else changes: in a block that
   * the step writes, older slots keep each byte.
   * Fails: BITNET_INVALID_ARGUMENT past the program's bounds and for a signal that the timeline has
   * reached, BITNET_CANCELLED, BITNET_DEVICE_LOST. [queue] [long] */
  bitnet_status (*queue_submit)(bitnet_queue* queue, const bitnet_step* step, bitnet_error* err);
  /* Waits until the timeline has reached `value`. Returns BITNET_TIMEOUT when timeout_ns have
   * passed, and at once if no submitted work reaches `value`. If a step fails after queue_submit,
   * queue_wait reports this for the step's value and for every later one, and the queue can then
   * only be destroyed.
   * Fails: BITNET_TIMEOUT, BITNET_DEVICE_LOST, or with the status of the failed step. [any], up to
   * timeout_ns */
  bitnet_status (*queue_wait)(bitnet_queue* queue, uint64_t value, uint64_t timeout_ns,
                              bitnet_error* err);
  /* Writes the timeline's value. Fails: BITNET_DEVICE_LOST. [any] [instant] */
  bitnet_status (*queue_poll)(bitnet_queue* queue, uint64_t* out, bitnet_error* err);
  /* Waits for all submitted work, then destroys the queue. Fails: cannot.
   * [device] [short], once it is done */
  void (*queue_destroy)(bitnet_queue* queue);

  /* After BITNET_OK no thread of the plugin runs, the plugin makes no callback, and no device work
   * is pending, until the next call that starts work. Handles stay valid.
   * Fails: BITNET_TIMEOUT. [any], beside no other call, up to timeout_ns */
  bitnet_status (*quiesce)(bitnet_backend* self, uint64_t timeout_ns, bitnet_error* err);

  /* ---- optional from here: a NULL slot counts as BITNET_UNSUPPORTED ---- */

  /* Returns NULL if the plugin does not offer that interface in that version or a newer one.
   * Fails: NULL. [any] [instant] */
  const bitnet_interface_header* (*query_interface)(bitnet_backend* self, bitnet_str name,
                                                    uint32_t min_version);
  /* Reports what the device is doing. `known` leaves out members that the plugin cannot fill.
   * Fails: BITNET_UNSUPPORTED. [any] [short] */
  bitnet_status (*device_status)(bitnet_device* device, bitnet_device_status* out,
                                 bitnet_error* err);
} bitnet_backend_v0;

/* The exported entry: negotiates the minor and fills the table. The host may call it many times per
 * process, so it starts no thread, loads no driver, and installs no signal handler or atexit hook.
 * `host` stays valid until `close`.
 * Fails: BITNET_INCOMPATIBLE, with need_minor_* filled, if both sides have no minor in common.
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
