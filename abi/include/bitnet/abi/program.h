/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* bitnet/abi/program.h - the forward pass as a flat list of ops, compiled once, run many times. */
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
  uint32_t body_count; /* composites: this many following ops define it; 0 for primitives */
  uint32_t inputs[4];  /* value indices  */
  uint32_t outputs[4]; /* value indices  */
  uint32_t weights[4]; /* indices into the weights of the program */
  int32_t ints[8];
  float floats[4];
} bitnet_op;

/* What lies outside of a graph: where the facts of a step are, what comes in, what goes out. Ops
 * say which facts they read (ops.h).
 *
 *   TOKENS         i32 (max_tokens)                 token ids
 *   POSITIONS      i32 (max_tokens)                 position in its sequence
 *   SEQUENCES      i32 (max_tokens)                 row of block tables, states
 *   SLOTS          i32 (max_tokens)                 block * block_tokens + offset
 *   BLOCK_TABLES   i32 (max_sequences, max_blocks)  block ids, in order
 *   OUTPUT_ROWS    i32 (max_outputs)                token rows that are wanted, in any order; a row
 *                                                   may be wanted twice
 *   VALUE_IN       a value that no op writes        it is there before the step
 *   VALUE_OUT      a value that an op writes        it is there after the step
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
  uint32_t value; /* of VALUE_IN, VALUE_OUT and LOGITS: its index, in one port at most; else
                     BITNET_NONE, and there is one port of the role at most */
} bitnet_port;

/* The largest logits of an output row by their ids, so that no caller has to read a whole row. The
 * core sets `count` to BITNET_NONE before a step. Of a step whose top_logits is n, 0 < n <=
 * BITNET_MOST_LARGEST, the plugin may then list of each row the n largest and what equals the n-th,
 * and others beside them: in any order, each id once, with the values that top_logits = 0 would
 * give. What LOGITS has of a row that is listed may be anything. What the plugin does not list it
 * leaves as it is. Only for devices with BITNET_LOGITS_LARGEST. */
#define BITNET_MOST_LARGEST 1023u
typedef struct bitnet_largest {
  uint32_t count; /* of entries; more than BITNET_MOST_LARGEST: LOGITS has the row */
  uint32_t reserved_0;
  int32_t ids[BITNET_MOST_LARGEST];
  float logits[BITNET_MOST_LARGEST];
} bitnet_largest;

/* Borrowed for the call. Every value is written by exactly one op (composites aside: their body
 * writes it) or comes in by a port before it is read. A composite may stand in the body of another
 * one. What ops do is as if each came after the one before it: attention sees what a KV_WRITE
 * before it wrote. */
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
/* Fixed reduction order whatever the batch and threads. */
#define BITNET_PROGRAM_DETERMINISTIC 0x10000u

/* Upper bounds, all > 0, that the program must be able to run, and what it may do. */
typedef struct bitnet_program_options {
  uint32_t struct_size;
  uint32_t flags;      /* BITNET_PROGRAM_* */
  uint32_t max_tokens; /* of one step      */
  uint32_t max_sequences;
  uint32_t max_outputs;
  uint32_t max_blocks;   /* per sequence     */
  uint32_t block_tokens; /* tokens in a KV block: any number; libbitnet has 64 */
  uint32_t precisions;   /* 1 << BITNET_PRECISION_* for each that kernels may use beside f32 */
  uint32_t n_buckets;
  uint32_t reserved_0;
  const uint32_t* buckets; /* step sizes, in tokens, that will be common; strictly ascending */
} bitnet_program_options;

/* Export and import use one canonical layout: for each layer, then k then v, then KV head, then
 * token in the block: head_dim elements of the pool's dtype, in the byte order of the machine.
 * With Q8_0 or Q4_0 both head_dims are multiples of 32, so that no block spans two tokens; 32
 * elements then take 34 or 18 bytes. A new pool holds anything; no op may look at a slot that none
 * wrote.
 *
 * A pool may have states too: what sequences of recurrent layers carry from step to step, each
 * state_elements f32 in the order of ops.h, whatever dtype_k and dtype_v are. Copy, export and
 * import name state i as block n_blocks + i. */
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
  uint32_t n_states;       /* both 0: there are none */
  uint32_t state_elements; /* of one state           */
} bitnet_kv_config;

/* Borrowed for the call, like what it points to. */
typedef struct bitnet_build_request {
  uint32_t struct_size;
  uint32_t n_weights;
  const bitnet_graph* graph;
  /* (n_weights), all sealed, which outlive the program. The graph counts their tensors through:
   * those of the first, then those of the second ... */
  bitnet_weights* const* weights;
  const bitnet_program_options* options;
  uint64_t cancel_token; /* for host->cancelled; 0 = cannot be cancelled */
} bitnet_build_request;

/* What a program would need, asked before there are weights. Borrowed like the above. */
typedef struct bitnet_query_request {
  uint32_t struct_size;
  uint32_t desc_size; /* sizeof(bitnet_tensor_desc) as the host knows it */
  const bitnet_graph* graph;
  const bitnet_tensor_desc* descs; /* (n_descs), which the graph's indices mean; without scales */
  const bitnet_program_options* options;
  const bitnet_kv_config* kv; /* of the pools that it will work on, but for its counts; or NULL */
  uint32_t n_descs;
  uint32_t reserved_0;
} bitnet_query_request;

typedef struct bitnet_graph_estimate {
  uint32_t struct_size;
  uint32_t reserved_0;
  uint64_t weight_bytes;   /* in the device's own layout; of those that can be aliased, none */
  uint64_t scratch_bytes;  /* of the program with its first binding                          */
  uint64_t binding_bytes;  /* of each binding more                                           */
  uint64_t kv_block_bytes; /* of each block of a pool; 0 if none was described               */
  uint64_t state_bytes;    /* of each state of a pool; 0 if it has none                      */
} bitnet_graph_estimate;

/* A part of a buffer. `offset` is a multiple of bitnet_device_info::buffer_alignment_bytes. */
typedef struct bitnet_bound {
  bitnet_buffer* buffer;
  uint64_t offset;
  uint64_t bytes; /* at least what the port needs at the program's bounds */
} bitnet_bound;

/* Borrowed for the call; buffers and pool outlive the binding. Several ports may have parts of one
 * buffer; parts do not overlap. Bindings whose steps are under way at the same time name different
 * buffers, but for values that one step makes for a later one. */
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
  /* Of minor 2. A hint: of at most so many sequences; 0 = as many as the program runs */
  uint32_t n_sequences;
  uint32_t reserved_1;
} bitnet_prepare_request;

/* One run of a program on what a binding names. The counts are within the program's bounds, those
 * of tokens and sequences > 0; facts that no op reads may be anything. What SEQUENCES names is
 * below n_sequences, of which some may have no token; what POSITIONS names is below max_blocks *
 * block_tokens. The tokens of a sequence stand together, each at the position after the one before
 * it; no two have one slot, no two sequences one state. Sequences may share blocks, but a token's
 * slot is in a block of its own sequence alone: none sees in a step what another writes in it.
 * From queue_submit until the timeline has reached signal_value the core changes nothing that the
 * binding names and runs no other step on it, and the plugin may read it at any time. */
typedef struct bitnet_step {
  uint32_t struct_size;
  uint32_t n_tokens;
  uint32_t n_sequences;
  uint32_t n_outputs;
  bitnet_binding* binding;
  uint64_t cancel_token; /* for host->cancelled; 0 = cannot be cancelled */
  uint64_t signal_value; /* the queue's timeline reaches this when done; greater than any before */
  /* 0: every logit is needed. n: of each output row only the n largest, and what equals the n-th;
   * a logit that is surely smaller may be -INFINITY. What is finite is what 0 would give. */
  uint32_t top_logits;
  /* 0: a token attends to everything up to itself. n: token t sees of the positions p <=
   * positions[t] those with p + n > positions[t] and those with p < window_keep. Blocks without a
   * position that a token of the step sees are not read, whatever the block table says. Only for
   * devices with BITNET_ATTENTION_WINDOW. */
  uint32_t window;
  uint32_t window_keep;
  uint32_t reserved_0;
} bitnet_step;

/* How often a kernel of this program ran: counted by the dispatcher when it ran. */
typedef struct bitnet_kernel_stat {
  uint32_t struct_size;
  uint32_t op; /* BITNET_OP_* */
  uint64_t calls;
  uint64_t time_ns; /* 0 unless BITNET_PROGRAM_PROFILE */
  uint64_t bytes;   /* of weights that the calls read; 0 = none, or not counted */
  char id[64];
} bitnet_kernel_stat;

#endif /* BITNET_ABI_PROGRAM_H */
