/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of this backend know of each other. The contract's opaque handles are its own
 * structs. */
#ifndef PLAIN_H
#define PLAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "bitnet/abi/backend.h"

/* Fills the caller's error, if there is one, and returns `code`. `format` is that of printf. */
bitnet_status fail(bitnet_error* err, bitnet_status code, const char* where, const char* format,
                   ...) __attribute__((format(printf, 4, 5)));

/* Copies a struct of `size` bytes to a caller who may know a shorter form of it. */
void hand_over(const void* value, uint32_t size, void* out);

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
  void* data;
};

struct tensor {
  uint64_t k, m, bytes, written;
  float* data; /* (m, k) */
  bool sealed;
};

struct bitnet_weights {
  uint32_t n;
  struct tensor tensors[];
};

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
SLOT(kv_pool_create);
SLOT(kv_copy_blocks);
SLOT(kv_export);
SLOT(kv_import);
SLOT(kv_pool_destroy);
SLOT(program_build);
SLOT(program_estimate);
SLOT(program_prepare);
SLOT(program_bind);
SLOT(program_stats);
SLOT(program_destroy);
SLOT(queue_create);
SLOT(queue_submit);
SLOT(queue_wait);
SLOT(queue_poll);
SLOT(queue_destroy);

#endif /* PLAIN_H */
