/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of this backend know of each other. The contract's opaque handles are its own
 * structs. */
#ifndef PLAIN_H
#define PLAIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "bitnet/abi/backend.h"

/* Fills the caller's error, if there is one, and returns `code`. `format` is that of printf. */
bitnet_status fail(bitnet_error* err, bitnet_status code, const char* where, const char* format,
                   ...) __attribute__((format(printf, 4, 5)));

/* Ends a slot whose caller does not give what it needs. */
#define NEED(given)                                                                           \
  do {                                                                                        \
    if (!(given)) return fail(err, BITNET_INVALID_ARGUMENT, __func__, "it needs %s", #given); \
  } while (0)

/* Copies a struct of which the host must know the first `least` bytes. What it says behind the
 * `size` bytes that are known here would have a meaning, and so is not passed over. */
bitnet_status receive(const void* from, uint64_t least, void* to, uint32_t size, const char* where,
                      bitnet_error* err);

/* The same for an array of at most `most` structs, `stride` bytes apart. The caller frees *out. */
enum { most = 1 << 20 };
bitnet_status receive_array(const void* from, uint32_t stride, uint32_t n, void** out,
                            uint32_t size, const char* where, bitnet_error* err);

/* Copies a struct of `size` bytes to a caller that may know a shorter form of it. */
void hand_over(const void* value, uint32_t size, void* out);

/* The same for number n of a list, if the caller has room for it; elements have `stride` bytes. */
void hand_over_one(const void* value, uint32_t size, void* out, uint32_t stride, uint32_t n,
                   uint32_t room);

/* True if a * b fits into *out. */
bool product(uint64_t a, uint64_t b, uint64_t* out);

/* True if the host wants the work that has this token to stop. */
bool is_cancelled(const struct bitnet_backend* b, uint64_t token);

/* ---- backend.c ---- */

enum { buffer_alignment = 64, most_kernels = 64 };

struct bitnet_device {
  struct bitnet_backend* backend;
};

struct bitnet_backend {
  const bitnet_host_v0* host;
  struct bitnet_device device;
  bool disabled[most_kernels]; /* the host found them wrong: setting "disable" */
};

/* The index of the kernel for an op, n_kernels if there is none. */
uint32_t find_kernel(const struct bitnet_backend* b, uint32_t op, uint32_t format);

/* ---- buffers.c ---- */

struct bitnet_buffer {
  uint64_t bytes;
  char* data;
};

/* ---- weights.c ---- */

struct tensor {
  uint32_t format; /* BITNET_FORMAT_*; of those that are not known nothing else is known */
  uint64_t k, m;   /* (m, k) */
  uint64_t row_bytes, bytes, written;
  uint64_t scale_group, n_scales;
  float* scales;       /* (n_scales), of ternary weights */
  unsigned char* data; /* (m, row_bytes) */
  bool sealed;
};

struct bitnet_weights {
  uint32_t n;
  struct tensor tensors[];
};

/* Weights as they are described, without memory. weights_destroy takes them back. */
bitnet_status describe_weights(const bitnet_tensor_desc* descs, uint32_t desc_size, uint32_t n,
                               const char* where, bitnet_weights** out, bitnet_error* err);

/* ---- pool.c ---- */

struct bitnet_kv_pool {
  bitnet_kv_config is;
  uint64_t k_bytes, v_bytes;         /* of one head of one token */
  uint64_t layer_bytes, block_bytes; /* of one block             */
  unsigned char* data; /* (n_blocks, block_bytes), each block in the canonical layout */
  float* states;       /* (n_states, state_elements) */
};

/* Says what the blocks of a pool take, whose counts of blocks and states are not looked at. */
bitnet_status measure_pool(const bitnet_kv_config* given, bitnet_kv_pool* out, const char* where,
                           bitnet_error* err);

/* ---- kernels.c ---- */

/* Where the facts of a step are, NULL where the graph has no port for them. */
struct facts {
  const int32_t *tokens, *positions, *sequences, *slots, *block_tables, *output_rows, *states;
  uint32_t n_tokens, n_sequences, n_outputs;
  uint32_t max_blocks, block_tokens;
  uint32_t window, window_keep;
  bitnet_kv_pool* pool;
};

/* One call of a kernel, all of it in range. */
struct work {
  const bitnet_op* op; /* its attributes */
  uint64_t rows;       /* of the first output; of KV_WRITE, of the inputs */
  uint64_t k, k1, m;   /* widths of both inputs and the first output; 0 where there is none */
  const void* in[2];   /* (rows, k), (rows, k1); of GATHER_ROWS (tokens, k) */
  void* out[2];        /* (rows, m), and of quantisers the factors */
  const struct tensor* weight; /* or NULL */
  const struct facts* facts;
  float* scratch; /* as many as the program says */
};

struct kernel {
  uint32_t op;
  uint32_t format; /* BITNET_FORMAT_* of its weight, NONE without one */
  uint32_t exact;  /* BITNET_EXACT_* */
  const char* id;
  void (*run)(const struct work* w);
};

extern const struct kernel all_kernels[];
extern const uint32_t n_kernels;       /* at most most_kernels */
extern const uint32_t attention_flags; /* BITNET_ATTENTION_* */

/* ---- graph.c ---- */

struct value {
  uint32_t dtype;
  int64_t rows; /* so many, or BITNET_DIM_TOKENS or BITNET_DIM_OUTPUTS */
  uint64_t width, bytes;
  bool written, has_port;
};

struct op {
  uint32_t kernel; /* index into all_kernels */
  bitnet_op is;
  const struct tensor* weight; /* or NULL */
  uint64_t state_end;          /* of its part of a state, which begins at ints[0]; 0: it has none */
};

struct bitnet_program {
  bitnet_device* device;
  uint32_t n_values, n_ops, n_ports;
  uint32_t roles; /* 1 << BITNET_PORT_* for each that there is */
  struct value* values;
  struct op* ops;
  bitnet_port* ports;
  bitnet_program_options bounds;
  uint64_t arena_bytes;    /* of all values without a port, and of scratch: each binding has that */
  uint64_t scratch_floats; /* of the op that needs most */
  uint32_t reads;          /* 1 << BITNET_PORT_* for each fact that an op reads */
  uint64_t vocabulary;     /* rows of the smallest weight that tokens choose from */
  uint64_t kv_layers, kv_width, n_kv_heads; /* that a pool must have; 0: any */
  uint64_t state_elements;
  _Atomic uint64_t calls[most_kernels];
};

/* A program with everything checked; weights[i] may be without memory. program_destroy takes it
 * back. */
bitnet_status read_graph(bitnet_device* device, const bitnet_graph* given,
                         const bitnet_program_options* options, bitnet_weights* const* weights,
                         uint32_t n_weights, bitnet_program** out, const char* where,
                         bitnet_error* err);

/* Rows of a value in a step. */
uint64_t rows_of(int64_t rows, uint64_t tokens, uint64_t outputs);

/* What an element of a value takes; 0 if the type is not known. */
uint64_t element_bytes(uint32_t dtype);

/* ---- ops.c ---- */

/* Whether shapes, element types and attributes of an op are those of its definition, all indices
 * being in range. Notes in the program what it reads and needs. */
bitnet_status check_op(struct bitnet_program* p, struct op* op, const char* where,
                       bitnet_error* err);

/* ---- facts.c ---- */

/* Whether every fact that the ops of a program read is in range, so that kernels need not look. */
bitnet_status check_facts(const struct bitnet_program* p, const struct facts* f, const char* where,
                          bitnet_error* err);

/* ---- program.c ---- */

struct bitnet_binding {
  bitnet_program* program;
  struct facts facts; /* those of a step are filled in for the step */
  char* arena;        /* its own, so that steps of several bindings do not meet */
  float* scratch;
  void* values[]; /* (n_values): in the arena or where a port says */
};

/* ---- queue.c ---- */

struct bitnet_queue {
  _Atomic uint64_t timeline;
};

/* BITNET_OK if the timeline can go on to `signal`. */
bitnet_status check_signal(bitnet_queue* queue, uint64_t signal, const char* where,
                           bitnet_error* err);

/* ---- the slots, declared by their types in the table ---- */

#define SLOT(name) __typeof__(*((bitnet_backend_v0*)0)->name) name
SLOT(buffer_create);
SLOT(buffer_map);
SLOT(buffer_destroy);
SLOT(weight_plan);
SLOT(weights_create);
SLOT(weight_write);
SLOT(weight_alias);
SLOT(weight_seal);
SLOT(weights_destroy);
SLOT(graph_query);
SLOT(program_build);
SLOT(program_bind);
SLOT(binding_prepare);
SLOT(binding_destroy);
SLOT(program_stats);
SLOT(program_destroy);
SLOT(kv_pool_create);
SLOT(kv_copy);
SLOT(kv_export);
SLOT(kv_import);
SLOT(kv_pool_destroy);
SLOT(queue_create);
SLOT(queue_submit);
SLOT(queue_wait);
SLOT(queue_poll);
SLOT(queue_destroy);

#endif /* PLAIN_H */
