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

  /* Logs a message. It never blocks, and the host copies both strings before it returns. After
   * quiesce the host ignores the message. Fails: cannot. [any] [instant] */
  void (*log)(void* self, uint32_t level, bitnet_str component, bitnet_str message);

  /* Returns how many workers parallel_run can run at the same time, at least 1. Fails: cannot.
   * [any] [instant] */
  uint32_t (*parallel_width)(void* self);

  /* Runs task(arg, w, n_workers) for every w < n_workers, all of them at the same time, so that
   * they may wait for each other. Returns when all have returned. The caller is worker 0. Calls
   * from several threads run one after the other.
   * Fails: BITNET_INVALID_ARGUMENT if n_workers is not in [1, parallel_width], and from inside a
   * task. [any], as long as its tasks run */
  bitnet_status (*parallel_run)(void* self, uint32_t n_workers, bitnet_task task, void* arg);

  /* Returns non-zero if the work with this token should stop soon; always 0 for token 0. A plugin
   * passes only tokens that it received, and each only while the work that came with it runs.
   * Fails: cannot. [any] [instant] */
  uint32_t (*cancelled)(void* self, uint64_t token);

  /* Returns the time of a monotonic clock in nanoseconds. Fails: cannot. [any] [instant] */
  uint64_t (*now_ns)(void* self);
} bitnet_host_v0;

#endif /* BITNET_ABI_HOST_H */
