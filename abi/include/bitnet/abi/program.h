/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* bitnet/abi/program.h - the forward pass as a flat list of ops, compiled once, run many times. */
#ifndef BITNET_ABI_PROGRAM_H
#define BITNET_ABI_PROGRAM_H

#include "bitnet/abi/base.h"
#include "bitnet/abi/ops.h"
#include "bitnet/abi/tensor.h"

typedef struct bitnet_program bitnet_program; /* owned by the plugin */
typedef struct bitnet_kv_pool bitnet_kv_pool; /* owned by the plugin */
typedef struct bitnet_buffer bitnet_buffer;   /* owned by the plugin */

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
  uint32_t weights[4]; /* indices into the weights object */
  int32_t ints[8];
  float floats[4];
} bitnet_op;

/* Borrowed for the call. Every value is written by exactly one op (composites aside: their body
 * writes it) before it is read. */
typedef struct bitnet_graph {
  uint32_t struct_size;
  uint32_t value_size; /* sizeof(bitnet_value) as the host knows it */
  uint32_t op_size;    /* sizeof(bitnet_op) as the host knows it    */
  uint32_t n_values;
  uint32_t n_ops;
  uint32_t logits; /* the value (O, n_vocab) that is copied to the logits buffer */
  const bitnet_value* values;
  const bitnet_op* ops;
} bitnet_graph;

#define BITNET_PROGRAM_DETERMINISTIC 1u /* fixed reduction order whatever the batch and threads */
#define BITNET_PROGRAM_PROFILE 2u       /* measure time per kernel                              */

/* Upper bounds that the program must be able to run. */
typedef struct bitnet_program_options {
  uint32_t struct_size;
  uint32_t flags;      /* BITNET_PROGRAM_* */
  uint32_t max_tokens; /* of one step      */
  uint32_t max_sequences;
  uint32_t max_outputs;
  uint32_t max_blocks;   /* per sequence     */
  uint32_t block_tokens; /* tokens in a KV block; 64 */
  uint32_t n_buckets;
  const uint32_t* buckets; /* step sizes, in tokens, that will be common; ascending */
} bitnet_program_options;

typedef struct bitnet_program_estimate {
  uint32_t struct_size;
  uint32_t reserved_0;
  uint64_t scratch_bytes;
} bitnet_program_estimate;

/* Persistent step buffers: the core rewrites their contents, never their address. Each was made by
 * buffer_create of the same device and is at least as large as the shape said here. */
typedef struct bitnet_step_buffers {
  uint32_t struct_size;
  uint32_t reserved_0;
  bitnet_buffer* tokens;       /* i32 (max_tokens)                  token ids                     */
  bitnet_buffer* positions;    /* i32 (max_tokens)                  position in its sequence      */
  bitnet_buffer* sequences;    /* i32 (max_tokens)                  row of block_tables           */
  bitnet_buffer* slots;        /* i32 (max_tokens)                  block * block_tokens + offset */
  bitnet_buffer* block_tables; /* i32 (max_sequences, max_blocks)   block ids, in order           */
  bitnet_buffer* output_rows;  /* i32 (max_outputs)                 token rows that want logits   */
  bitnet_buffer* logits;       /* f32 (max_outputs, n_vocab)        written by the program        */
} bitnet_step_buffers;

/* One run of a program. The counts must be within the program's bounds. */
typedef struct bitnet_step {
  uint32_t struct_size;
  uint32_t n_tokens;
  uint32_t n_sequences;
  uint32_t n_outputs;
  bitnet_program* program;
  bitnet_kv_pool* kv_pool;
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
  uint32_t op;
  uint64_t calls;
  uint64_t time_ns; /* 0 unless BITNET_PROGRAM_PROFILE */
  uint64_t bytes;   /* of weights that the calls read; 0 = none, or not counted */
  char id[64];
} bitnet_kernel_stat;

/* Export and import use one canonical layout: for each layer, then k then v, then KV head, then
 * token in the block: head_dim elements of the pool's dtype. With Q8_0 head_dim is a multiple of
 * 32, so that no block spans two tokens; 32 elements then take 34 bytes. */
typedef struct bitnet_kv_config {
  uint32_t struct_size;
  uint32_t dtype_k; /* BITNET_DTYPE_F32, _F16 or _Q8_0, as bitnet_device_info::kv_dtypes allows */
  uint32_t dtype_v;
  uint32_t n_layers;
  uint32_t n_kv_heads;
  uint32_t head_dim;
  uint32_t block_tokens;
  uint32_t n_blocks;
} bitnet_kv_config;

#endif /* BITNET_ABI_PROGRAM_H */
