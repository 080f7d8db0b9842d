/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* bitnet/abi/answers.h - checks that find an impossible answer of a plugin. The host, the self-test
 * of the probe and the conformance kit use the same checks, and reject such answers.
 *
 * Each function returns NULL, or a description of the fault for a message that begins with the name
 * of the slot ("gives no address"). It only compares members of the answer. Of the pointers that
 * the plugin returned, it follows only that to the table of query_interface(). */
#ifndef BITNET_ABI_ANSWERS_H
#define BITNET_ABI_ANSWERS_H

#include <string.h>

#include "bitnet/abi/backend.h"
#include "bitnet/abi/packed.h"
#include "bitnet/abi/tuning.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BITNET_MOST_DEVICES 1024u
#define BITNET_MOST_KERNELS 16384u /* of a device, and of a program's counters */
#define BITNET_MOST_ALIGNMENT_BYTES (UINT64_C(1) << 30)

static inline int bitnet_is_alignment(uint64_t bytes) {
  return bytes != 0 && (bytes & (bytes - 1)) == 0 && bytes <= BITNET_MOST_ALIGNMENT_BYTES;
}

/* For every slot that returns a handle. */
static inline const char* bitnet_wrong_handle(const void* handle) {
  return handle == NULL ? "succeeds and gives no handle" : NULL;
}

/* For two calls of buffer_map; alignment_bytes is 0 if the device reports no alignment. */
static inline const char* bitnet_wrong_mapping(const void* address, const void* again,
                                               uint64_t bytes, uint32_t alignment_bytes) {
  const uint64_t at = (uint64_t)(uintptr_t)address;
  if (address == NULL) return "succeeds and gives no address";
  if (address != again) return "gives another address when it is asked again";
  if (bytes > UINT64_MAX - at) return "gives a buffer that reaches past the end of memory";
  if (alignment_bytes != 0 && at % alignment_bytes != 0)
    return "gives an address without the alignment that the device reports";
  return NULL;
}

/* For buffer_map of two buffers of one device. */
static inline const char* bitnet_wrong_overlap(const void* a, uint64_t a_bytes, const void* b,
                                               uint64_t b_bytes) {
  const uint64_t at_a = (uint64_t)(uintptr_t)a, at_b = (uint64_t)(uintptr_t)b;
  return at_a < at_b + b_bytes && at_b < at_a + a_bytes ? "gives two buffers the same memory"
                                                        : NULL;
}

/* For weight_plan. */
static inline const char* bitnet_wrong_weight_plan(const bitnet_weight_plan* plan) {
  if (plan->struct_size != sizeof *plan) return "changes struct_size";
  if (memchr(plan->layout_id, 0, sizeof plan->layout_id) == NULL)
    return "gives a layout_id without an end";
  if (plan->layout_id[0] == 0) return "gives no layout_id";
  if (plan->accepts_alias != 0 && !bitnet_is_alignment(plan->alignment_bytes))
    return "takes the caller's memory, with an alignment that is no power of two";
  if (plan->accepts_alias == 0 && plan->packed_bytes == 0)
    return "neither takes the caller's memory nor says how much its own form takes";
  return NULL;
}

/* For graph_query. */
static inline const char* bitnet_wrong_levels(const uint32_t* levels, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i)
    if (levels[i] > BITNET_LEVEL_FUSED) return "gives a level that there is not";
  return NULL;
}

/* For graph_query, if every primitive has a level; with_kv: the request described KV blocks. */
static inline const char* bitnet_wrong_estimate(const bitnet_graph_estimate* e, int with_kv) {
  if (e->struct_size != sizeof *e) return "changes struct_size";
  if (with_kv != 0 && e->kv_block_bytes == 0) return "says that a block of keys takes no memory";
  return NULL;
}

/* For the count of kernels and of program_stats, before the caller allocates for so many. */
static inline const char* bitnet_wrong_count(uint32_t n) {
  return n > BITNET_MOST_KERNELS ? "counts more than 16384 kernels" : NULL;
}

/* For program_stats. */
static inline const char* bitnet_wrong_stat(const bitnet_kernel_stat* stat) {
  if (memchr(stat->id, 0, sizeof stat->id) == NULL) return "gives an id without an end";
  if (stat->id[0] == 0) return "gives a kernel without an id";
  return NULL;
}

/* For queue_poll, after queue_wait returned BITNET_OK for a value. */
static inline const char* bitnet_wrong_timeline(uint64_t value, uint64_t waited_for) {
  return value < waited_for ? "says that the step is not done that queue_wait saw done" : NULL;
}

/* For query_interface, and for the tables that it returns. `size` is that of the table. */
static inline const char* bitnet_wrong_interface(const bitnet_interface_header* header,
                                                 uint64_t size) {
  if (header->version == 0) return "gives an interface of version 0";
  return header->struct_size < size ? "gives an interface that is shorter than its version" : NULL;
}
static inline const char* bitnet_wrong_packed_interface(const bitnet_packed_weights_v1* table) {
  const char* wrong = bitnet_wrong_interface(&table->header, sizeof *table);
  if (wrong != NULL) return wrong;
  return table->describe == NULL || table->pack == NULL || table->adopt == NULL
             ? "gives an interface with a NULL slot"
             : NULL;
}
static inline const char* bitnet_wrong_tuning_interface(const bitnet_tuning_v1* table) {
  const char* wrong = bitnet_wrong_interface(&table->header, sizeof *table);
  if (wrong != NULL) return wrong;
  return table->describe == NULL || table->measure == NULL || table->adopt == NULL
             ? "gives an interface with a NULL slot"
             : NULL;
}

/* For bitnet_packed_weights_v1.describe, for a weight of so many elements. */
static inline const char* bitnet_wrong_packed_info(const bitnet_packed_info* info,
                                                   uint64_t elements) {
  const uint64_t most = 16; /* bytes of an element at most, padding included */
  if (info->struct_size != sizeof *info) return "changes struct_size";
  if (memchr(info->layout_id, 0, sizeof info->layout_id) == NULL)
    return "gives a layout_id without an end";
  if (info->bytes == 0) return NULL;
  if (info->layout_id[0] == 0) return "gives no layout_id";
  if (info->bytes / most > elements + 65536)
    return "gives a form that is larger than 16 bytes for each element";
  return info->alignment_bytes != 0 && !bitnet_is_alignment(info->alignment_bytes)
             ? "gives an alignment that is no power of two"
             : NULL;
}

/* For bitnet_packed_weights_v1.pack. */
static inline const char* bitnet_wrong_packed_form(const void* form, uint64_t alignment_bytes) {
  if (form == NULL) return "succeeds and gives no address";
  return alignment_bytes != 0 && (uint64_t)(uintptr_t)form % alignment_bytes != 0
             ? "gives an address without the alignment that it reports"
             : NULL;
}

/* For device_status. Members that `known` does not name are not checked. Unknown flags of the low
 * half of a word are permitted. */
static inline const char* bitnet_wrong_device_status(const bitnet_device_status* s) {
  const uint32_t known = s->known;
  if (s->struct_size != sizeof *s) return "changes struct_size";
  if (s->reserved_0 != 0) return "sets a reserved member";
  if ((known & BITNET_FLAGS_MUST_UNDERSTAND) != 0)
    return "reports something that has to be understood and is not";
  if ((known & BITNET_STATUS_MEMORY) != 0 && s->memory_total_bytes == 0)
    return "reports a memory of 0 bytes";
  if ((known & BITNET_STATUS_MEMORY) != 0 && s->memory_free_bytes > s->memory_total_bytes)
    return "reports more free memory than there is";
  if ((known & BITNET_STATUS_POOL) != 0 && s->pool_used_bytes > s->pool_bytes)
    return "reports that more of its pool is used than it has";
  if ((known & BITNET_STATUS_UTILISATION) != 0 && s->utilisation_percent > 100)
    return "reports a utilisation of more than 100 percent";
  if ((known & BITNET_STATUS_TEMPERATURE) != 0 &&
      (s->temperature_millicelsius < -273150 || s->temperature_millicelsius > 1000000))
    return "reports a temperature that no device has";
  if ((known & BITNET_STATUS_THROTTLED) != 0 && (s->throttled & BITNET_FLAGS_MUST_UNDERSTAND) != 0)
    return "reports a reason for being slow that has to be understood and is not";
  if ((known & BITNET_STATUS_HEALTH) != 0 &&
      (s->health < BITNET_HEALTH_GOOD || s->health > BITNET_HEALTH_LOST))
    return "reports a health that there is not";
  return NULL;
}

/* For a row that a step with top_logits = n lists. */
static inline const char* bitnet_wrong_largest(const bitnet_largest* row, uint32_t n,
                                               uint64_t n_vocab) {
  if (row->count < n && row->count < n_vocab) return "lists fewer of the largest logits than asked";
  for (uint32_t i = 0; i < row->count; ++i)
    if (row->ids[i] < 0 || (uint64_t)row->ids[i] >= n_vocab)
      return "lists a logit of an id that is not in the vocabulary";
  return NULL;
}

/* A quiet NaN that no computation gives. The core stores it where a step will write logits. A
 * logit that still has these bits after the step was not written. */
#define BITNET_UNWRITTEN_LOGIT_BITS 0x7fe1b17eu

#ifdef __cplusplus
}
#endif

#endif /* BITNET_ABI_ANSWERS_H */
