/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* bitnet/abi/host.h - what the host offers to a plugin. */
#ifndef BITNET_ABI_HOST_H
#define BITNET_ABI_HOST_H

#include "bitnet/abi/base.h"

#define BITNET_LOG_ERROR 0u
#define BITNET_LOG_WARN 1u
#define BITNET_LOG_INFO 2u
#define BITNET_LOG_DEBUG 3u

/* One share of a parallel run; `worker` is in [0, n_workers). */
typedef void (*bitnet_task)(void* arg, uint32_t worker, uint32_t n_workers);

/* Valid from the entry call until `close` has returned. */
typedef struct bitnet_host_v0 {
  uint32_t struct_size;
  uint32_t reserved_0;
  void* self; /* first argument of every callback; owned by the host */

  /* Never blocks; ignored after quiesce. Both strings are copied at once. Fails: cannot.
   * [any] [instant] */
  void (*log)(void* self, uint32_t level, bitnet_str component, bitnet_str message);

  /* How many workers parallel_run can run at the same time, at least 1. Fails: cannot.
   * [any] [instant] */
  uint32_t (*parallel_width)(void* self);

  /* Runs task(arg, w, n) for every w < n_workers, all of them at the same time (so they may wait
   * for each other), and returns when all have returned. The caller is worker 0. Calls from several
   * threads take turns.
   * Fails: BITNET_INVALID_ARGUMENT if n_workers is not in [1, parallel_width], and from inside a
   * task. [any], as long as its tasks run */
  bitnet_status (*parallel_run)(void* self, uint32_t n_workers, bitnet_task task, void* arg);

  /* Non-zero when the work that carries this token should stop soon; always 0 for token 0. A plugin
   * passes a token that it was given, while the work runs that came with the token. Fails: cannot.
   * [any] [instant] */
  uint32_t (*cancelled)(void* self, uint64_t token);

  /* Monotonic clock, nanoseconds. Fails: cannot. [any] [instant] */
  uint64_t (*now_ns)(void* self);
} bitnet_host_v0;

#endif /* BITNET_ABI_HOST_H */
