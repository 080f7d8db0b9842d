/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* bitnet/abi/program.h - a forward pass as a flat list of ops, compiled once and run many times. */
#ifndef BITNET_ABI_PROGRAM_H
#define BITNET_ABI_PROGRAM_H

#include "bitnet/abi/base.h"
#include "bitnet/abi/ops.h"
#include "bitnet/abi/tensor.h"

typedef struct bitnet_program bitnet_program; /* handles, all owned by the plugin */
typedef struct bitnet_binding bitnet_binding;
typedef struct bitnet_kv_pool bitnet_kv_pool;
typedef struct bitnet_buffer bitnet_buffer;
typedef struct bitnet_weights bitnet_weights;

#define BITNET_DIM_TOKENS (-1)  /* tokens of the step             */
#define BITNET_DIM_OUTPUTS (-2) /* rows whose logits are wanted   */

/* A value: (dims[0], dims[1]) row-major; dims[1] = 1 for one number per row. */
typedef struct bitnet_value {
  uint32_t dtype; /* BITNET_DTYPE_* */
  uint32_t reserved_0;
  int64_t dims[2]; /* > 0, or BITNET_DIM_* in dims[0] */
} bitnet_value;

/* One op. Unused indices are BITNET_NONE; unused attributes are 0. */
typedef struct bitnet_op {
  uint32_t op;         /* BITNET_OP_*                                    */
  uint32_t body_count; /* composites: the number of following ops that define it; primitives: 0 */
  uint32_t inputs[4];  /* value indices  */
  uint32_t outputs[4]; /* value indices  */
  uint32_t weights[4]; /* indices into the weights of the program */
  int32_t ints[8];
  float floats[4];
} bitnet_op;

/* Ports connect a graph with memory: with the facts of a step, and with the values that come in and
 * go out. ops.h has the facts that each op reads.
 *
 *   TOKENS         i32 (max_tokens)                 token ids
 *   POSITIONS      i32 (max_tokens)                 position in its sequence
 *   SEQUENCES      i32 (max_tokens)                 its row of BLOCK_TABLES and STATES
 *   SLOTS          i32 (max_tokens)                 block * block_tokens + offset
 *   BLOCK_TABLES   i32 (max_sequences, max_blocks)  block ids, in order
 *   OUTPUT_ROWS    i32 (max_outputs)                token rows that are needed, in any order; a row
 *                                                   may be listed twice
 *   VALUE_IN       a value that no op writes        present before the step
 *   VALUE_OUT      a value that an op writes        present after the step
 *   LOGITS         f32 (outputs, n_vocab)           a VALUE_OUT; at most one; see top_logits
 *   STATES         i32 (max_sequences)              the state of each sequence
 *   LARGEST        bitnet_largest (max_outputs)     beside LOGITS; see its type */
#define BITNET_PORT_TOKENS 1u
#define BITNET_PORT_POSITIONS 2u
#define BITNET_PORT_SEQUENCES 3u
#define BITNET_PORT_SLOTS 4u
#define BITNET_PORT_BLOCK_TABLES 5u
#define BITNET_PORT_OUTPUT_ROWS 6u
#define BITNET_PORT_VALUE_IN 7u
#define BITNET_PORT_VALUE_OUT 8u
#define BITNET_PORT_LOGITS 9u
#define BITNET_PORT_STATES 10u
#define BITNET_PORT_LARGEST 11u

typedef struct bitnet_port {
  uint32_t role;  /* BITNET_PORT_* */
  uint32_t value; /* VALUE_IN, VALUE_OUT, LOGITS: index of a value, which at most one port names;
                     other roles: BITNET_NONE, and at most one port has the role */
} bitnet_port;

/* The largest logits of an output row with their ids, so that the caller need not read a whole row.
 * The core sets `count` to BITNET_NONE before a step. If top_logits of the step is n, 0 < n <=
 * BITNET_MOST_LARGEST, the plugin may list any of the rows. The list of a row has the n largest
 * logits and all that equal the n-th, and may have others. They are in any order, each id once, and
 * have the values that top_logits = 0 gives. If a row is listed, its part of LOGITS may have any
 * content. If a row is not listed, the plugin does not change its entry. Only for devices with
 * BITNET_LOGITS_LARGEST. */
#define BITNET_MOST_LARGEST 1023u
typedef struct bitnet_largest {
  uint32_t count; /* of entries; if above BITNET_MOST_LARGEST, LOGITS has the row */
  uint32_t reserved_0;
  int32_t ids[BITNET_MOST_LARGEST];
  float logits[BITNET_MOST_LARGEST];
} bitnet_largest;

/* Borrowed for the call. Exactly one op writes each value (of a composite, an op of its body), or a
 * port provides the value before an op reads it. The body of a composite may contain another
 * composite. The results are as if the ops ran one after the other: attention reads the keys and
 * values that an earlier KV_WRITE wrote. */
typedef struct bitnet_graph {
  uint32_t struct_size;
  uint32_t value_size; /* sizeof(bitnet_value) as the host knows it */
  uint32_t op_size;    /* sizeof(bitnet_op) as the host knows it    */
  uint32_t port_size;  /* sizeof(bitnet_port) as the host knows it  */
  uint32_t n_values;
  uint32_t n_ops;
  uint32_t n_ports;
  uint32_t reserved_0;
  const bitnet_value* values;
  const bitnet_op* ops;
  const bitnet_port* ports;
} bitnet_graph;

#define BITNET_PROGRAM_PROFILE 1u /* measure time per kernel */
/* The order of each sum is fixed: it depends neither on the batch nor on the threads. */
#define BITNET_PROGRAM_DETERMINISTIC 0x10000u

/* Upper bounds, all > 0, of the steps that the program must be able to run, and its settings. */
typedef struct bitnet_program_options {
  uint32_t struct_size;
  uint32_t flags;      /* BITNET_PROGRAM_* */
  uint32_t max_tokens; /* of one step      */
  uint32_t max_sequences;
  uint32_t max_outputs;
  uint32_t max_blocks;   /* per sequence     */
  uint32_t block_tokens; /* tokens in a KV block: any number; libbitnet uses 64 */
  uint32_t precisions;   /* 1 << BITNET_PRECISION_* for each that kernels may use beside f32 */
  uint32_t n_buckets;
  uint32_t reserved_0;
  const uint32_t* buckets; /* step sizes, in tokens, that will be common; strictly ascending */
} bitnet_program_options;

/* Export and import use one canonical layout: for each layer, then k then v, then KV head, then
 * token in the block: head_dim elements of the pool's dtype, in the byte order of the machine.
 * With Q8_0 or Q4_0 both head_dims are multiples of 32, so that no block of the format spans two
 * tokens; 32 elements then take 34 or 18 bytes. A new pool has any content; no op may read a slot
 * that was never written.
 *
 * A pool may have states, too, which recurrent layers carry from one step of a sequence to the
 * next. Each has state_elements f32 in the order of ops.h, independent of dtype_k and dtype_v.
 * kv_copy, kv_export and kv_import use block number n_blocks + i for state i. */
typedef struct bitnet_kv_config {
  uint32_t struct_size;
  uint32_t dtype_k; /* BITNET_DTYPE_F32, _F16, _Q8_0 or _Q4_0, of bitnet_device_info::kv_dtypes */
  uint32_t dtype_v;
  uint32_t n_layers;
  uint32_t n_kv_heads;
  uint32_t head_dim_k;
  uint32_t head_dim_v;
  uint32_t block_tokens;
  uint32_t n_blocks;
  uint32_t reserved_0;
  uint32_t n_states;       /* both 0: no states      */
  uint32_t state_elements; /* of one state           */
} bitnet_kv_config;

/* Borrowed for the call, like what it points to. */
typedef struct bitnet_build_request {
  uint32_t struct_size;
  uint32_t n_weights;
  const bitnet_graph* graph;
  /* (n_weights), all sealed; they outlive the program. The graph numbers the tensors of all sets
   * consecutively: those of the first set, then those of the second ... */
  bitnet_weights* const* weights;
  const bitnet_program_options* options;
  uint64_t cancel_token; /* for host->cancelled; 0 = cannot be cancelled */
} bitnet_build_request;

/* Describes a program before there are weights. Borrowed like bitnet_build_request. */
typedef struct bitnet_query_request {
  uint32_t struct_size;
  uint32_t desc_size; /* sizeof(bitnet_tensor_desc) as the host knows it */
  const bitnet_graph* graph;
  const bitnet_tensor_desc* descs; /* (n_descs), by the graph's weight indices; without scales */
  const bitnet_program_options* options;
  const bitnet_kv_config* kv; /* of its pools, whose n_blocks and n_states may differ; or NULL */
  uint32_t n_descs;
  uint32_t reserved_0;
} bitnet_query_request;

typedef struct bitnet_graph_estimate {
  uint32_t struct_size;
  uint32_t reserved_0;
  uint64_t weight_bytes;   /* in the device's own layout; tensors that can be aliased: 0  */
  uint64_t scratch_bytes;  /* of the program with its first binding                          */
  uint64_t binding_bytes;  /* of each further binding                                        */
  uint64_t kv_block_bytes; /* of each block of a pool; 0 if no pool was described            */
  uint64_t state_bytes;    /* of each state of a pool; 0 if it has none                      */
} bitnet_graph_estimate;

/* A part of a buffer. `offset` is a multiple of bitnet_device_info::buffer_alignment_bytes. */
typedef struct bitnet_bound {
  bitnet_buffer* buffer;
  uint64_t offset;
  uint64_t bytes; /* at least what the port needs at the program's bounds */
} bitnet_bound;

/* Borrowed for the call; buffers and pool outlive the binding. Several ports may use parts of one
 * buffer; parts do not overlap. Bindings whose steps run at the same time use different buffers,
 * except for values that one step writes for a later one. */
typedef struct bitnet_bind_request {
  uint32_t struct_size;
  uint32_t bound_size; /* sizeof(bitnet_bound) as the host knows it */
  uint32_t n_bound;    /* ports of the graph                        */
  uint32_t reserved_0;
  const bitnet_bound* bound; /* (n_bound), in the order of the ports */
  bitnet_kv_pool* kv_pool;   /* NULL if no op reads or writes keys or states */
} bitnet_bind_request;

typedef struct bitnet_prepare_request {
  uint32_t struct_size;
  uint32_t n_tokens;
  uint32_t n_outputs;
  uint32_t reserved_0;
  uint64_t cancel_token; /* for host->cancelled; 0 = cannot be cancelled */
  /* Since minor 2. A hint: the most sequences of such a step; 0 = the program's bound */
  uint32_t n_sequences;
  uint32_t reserved_1;
} bitnet_prepare_request;

/* One run of a program on a binding. The counts are within the program's bounds; n_tokens and
 * n_sequences are > 0. Facts that no op reads may have any content.
 * Each entry of SEQUENCES is below n_sequences; a sequence may have no token. Each entry of
 * POSITIONS is below max_blocks * block_tokens. The tokens of a sequence are consecutive rows with
 * consecutive positions. No two tokens have the same slot, and no two sequences the same state.
 * Sequences may share blocks, but the block of a token's slot belongs to the token's sequence
 * alone: no sequence reads data that another sequence writes in the same step.
 * From queue_submit until the timeline has reached signal_value, the core neither changes memory
 * that the binding names nor runs another step on the binding, and the plugin may read that memory
 * at any time. */
typedef struct bitnet_step {
  uint32_t struct_size;
  uint32_t n_tokens;
  uint32_t n_sequences;
  uint32_t n_outputs;
  bitnet_binding* binding;
  uint64_t cancel_token; /* for host->cancelled; 0 = cannot be cancelled */
  uint64_t signal_value; /* the queue's timeline reaches this when done; greater than any before */
  /* 0: all logits are needed. n: of each output row the n largest are needed, and all that equal
   * the n-th; a smaller logit may be -INFINITY. Every finite logit is the one that 0 gives. */
  uint32_t top_logits;
  /* 0: a token attends to all positions up to its own. n: token t attends to the positions p <=
   * positions[t] with p + n > positions[t] or p < window_keep. The plugin does not read a block
   * whose positions no token of the step attends to, whatever entry the block table has for it.
   * Only for devices with BITNET_ATTENTION_WINDOW. */
  uint32_t window;
  uint32_t window_keep;
  uint32_t reserved_0;
} bitnet_step;

/* How often a kernel of this program ran. The dispatcher counts actual runs. */
typedef struct bitnet_kernel_stat {
  uint32_t struct_size;
  uint32_t op; /* BITNET_OP_* */
  uint64_t calls;
  uint64_t time_ns; /* 0 unless BITNET_PROGRAM_PROFILE */
  uint64_t bytes;   /* of weights that the calls read; 0 = none, or not counted */
  char id[64];
} bitnet_kernel_stat;

#endif /* BITNET_ABI_PROGRAM_H */
