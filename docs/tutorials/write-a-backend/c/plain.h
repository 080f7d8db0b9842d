/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of this backend know of each other. The contract's opaque handles are its own
 * structs. */
#ifndef PLAIN_H
#define PLAIN_H

#include <pthread.h>
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

/* Copies a struct of `size` bytes to a caller who may know a shorter form of it. */
void hand_over(const void* value, uint32_t size, void* out);

/* The same for number n of a list, if the caller has room for it; elements have `stride` bytes. */
void hand_over_one(const void* value, uint32_t size, void* out, uint32_t stride, uint32_t n,
                   uint32_t room);

/* True if a * b fits into *out. */
bool product(uint64_t a, uint64_t b, uint64_t* out);

/* ---- kernels.c ---- */

/* Rows of f32, all of them in range. */
struct work {
  uint64_t rows, width;
  const float* in;      /* (rows, width), of GATHER_ROWS (tokens, width) */
  const float* weight;  /* (any, width), of EMBED_GATHER only */
  const int32_t* index; /* (rows): token ids, or the rows that are gathered */
  float* out;           /* (rows, width) */
};

struct kernel {
  uint32_t op;
  uint32_t format; /* BITNET_FORMAT_* of its weight */
  const char* id;
  void (*run)(const struct work* w);
};

enum { n_kernels = 3 };
extern const struct kernel all_kernels[n_kernels];

/* ---- backend.c ---- */

enum { buffer_alignment = 64 };

struct bitnet_device {
  struct bitnet_backend* backend;
};

struct bitnet_backend {
  const bitnet_host_v0* host;
  struct bitnet_device device;
  bool disabled[n_kernels]; /* the host found them wrong: setting "disable" */
};

/* The index of the kernel for an op, n_kernels if there is none. */
uint32_t find_kernel(const struct bitnet_backend* b, uint32_t op, uint32_t format);

/* ---- storage.c ---- */

struct bitnet_buffer {
  uint64_t bytes;
  char* data;
};

struct tensor {
  uint32_t format; /* BITNET_FORMAT_*; of others than f32 nothing else is known */
  uint64_t k, m, bytes, written;
  float* data; /* (m, k) */
  bool sealed;
};

struct bitnet_weights {
  uint32_t n;
  struct tensor tensors[];
};

/* Weights as they are described, without memory. weights_destroy takes them back. */
bitnet_status describe_weights(const bitnet_tensor_desc* descs, uint32_t desc_size, uint32_t n,
                               const char* where, bitnet_weights** out, bitnet_error* err);

/* Copies what a pool is to be, n_blocks unseen, and says what one of its blocks takes. */
bitnet_status measure_block(const bitnet_kv_config* given, bitnet_kv_config* known, uint64_t* bytes,
                            const char* where, bitnet_error* err);

/* ---- graph.c ---- */

struct value {
  int64_t rows; /* so many, or BITNET_DIM_TOKENS or BITNET_DIM_OUTPUTS */
  uint64_t width, bytes;
  bool written, has_port;
  float* data; /* (rows, width), the rows being those of the largest step */
};

struct op {
  uint32_t kernel; /* index into all_kernels */
  uint32_t in;     /* value, or BITNET_NONE */
  uint32_t out;
  const struct tensor* weight; /* or NULL */
};

struct bitnet_program {
  bitnet_device* device;
  uint32_t n_values, n_ops, n_ports;
  uint32_t roles; /* 1 << BITNET_PORT_* for each that there is */
  struct value* values;
  struct op* ops;
  bitnet_port* ports;
  bitnet_program_options bounds;
  uint64_t scratch_bytes;        /* of all values */
  uint64_t vocabulary;           /* rows of the smallest weight that tokens choose from */
  bool gathers;                  /* an op reads the output rows */
  pthread_mutex_t one_at_a_time; /* steps of several queues, and program_stats */
  uint64_t calls[n_kernels];
};

/* A program with everything checked and no value in memory; weights[i] may be without theirs.
 * program_destroy takes it back. */
bitnet_status read_graph(bitnet_device* device, const bitnet_graph* given,
                         const bitnet_program_options* options, bitnet_weights* const* weights,
                         uint32_t n_weights, bitnet_program** out, const char* where,
                         bitnet_error* err);

/* Rows of a value in a step. */
uint64_t rows_of(int64_t rows, uint64_t tokens, uint64_t outputs);

/* ---- program.c ---- */

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
