/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* bitnet/abi/info.h - facts about a backend, its devices and its kernels. The core ranks devices by
 * them. An unknown number is 0 and an unknown string is empty. */
#ifndef BITNET_ABI_INFO_H
#define BITNET_ABI_INFO_H

#include "bitnet/abi/base.h"

#define BITNET_LIFE_THREAD_FREE 1u    /* starts no thread of its own                         */
#define BITNET_LIFE_UNLOADABLE 2u     /* may be dlclosed after close                         */
#define BITNET_LIFE_HOT_SWAP 4u       /* two generations may be open in one process          */
#define BITNET_LIFE_USES_HOST_POOL 8u /* computes inside host->parallel_run                  */

/* Strings stay valid until `close`; the core copies them at once. */
typedef struct bitnet_backend_info {
  uint32_t struct_size;
  uint32_t life_flags; /* BITNET_LIFE_* */
  bitnet_str name;     /* "cpu"; equal to the ELF note's name          */
  bitnet_str version;  /* semantic version of the plugin               */
  bitnet_str vendor;   /* reverse DNS                                  */
  bitnet_str license;  /* SPDX                                         */
  bitnet_str driver;   /* driver stack, "" when it needs none          */
} bitnet_backend_info;

#define BITNET_DEVICE_CPU 1u
#define BITNET_DEVICE_GPU 2u
#define BITNET_DEVICE_NPU 3u
#define BITNET_DEVICE_OTHER 4u

#define BITNET_ATTENTION_WINDOW 1u       /* steps may have a window                  */
#define BITNET_ATTENTION_LAYER_WINDOW 2u /* so may ATTN_PAGED, in ints[4]            */

#define BITNET_LOGITS_LARGEST 1u /* graphs may have BITNET_PORT_LARGEST */

typedef struct bitnet_device_info {
  uint32_t struct_size;
  uint32_t device_class; /* BITNET_DEVICE_* */
  char name[64];         /* NUL terminated, e.g. "AMD EPYC 9965"                        */
  char uuid[64];         /* stable id of it or its partition, as its vendor's tools print it */
  char pci_address[32];  /* "0000:01:00.0", "" if none                                 */
  char arch[64];         /* "x86-64 avx512vnni", "sm_90a"                              */
  char driver_version[32];
  uint64_t memory_total_bytes;
  uint32_t compute_units;          /* cores or SMs */
  uint32_t buffer_alignment_bytes; /* power of two: of mapped buffers, and of offsets in them */
  uint64_t max_allocation_bytes;
  uint32_t kv_dtypes;       /* of KV pools: 1 << BITNET_DTYPE_* for each; 0 = f32 and f16 */
  uint32_t attention_flags; /* BITNET_ATTENTION_* */
  uint32_t logits_flags;    /* BITNET_LOGITS_*    */
  uint32_t reserved_0;
} bitnet_device_info;

#define BITNET_LEVEL_NONE 0u
#define BITNET_LEVEL_REFERENCE 1u /* the slow, obvious definition */
#define BITNET_LEVEL_OPTIMISED 2u
#define BITNET_LEVEL_FUSED 3u /* one kernel for a composite   */

#define BITNET_EXACT_INTEGER 1u /* bit-exact integer arithmetic                            */
#define BITNET_EXACT_BATCH 2u   /* same bits whatever the batch, bucket or thread count    */
#define BITNET_EXACT_RUN 4u     /* same bits from run to run                               */

/* Types of the factors in products of f32 activations; ops.h has the tolerance of each. */
#define BITNET_PRECISION_F32 0u
#define BITNET_PRECISION_TF32 1u
#define BITNET_PRECISION_F16 2u
#define BITNET_PRECISION_BF16 3u

/* One kernel that the device can run. `id` names op, format and instruction set in that order,
 * for example "linear_ternary.ternary2.avx512vnni". */
typedef struct bitnet_kernel_info {
  uint32_t struct_size;
  uint32_t op;     /* BITNET_OP_*      */
  uint32_t format; /* BITNET_FORMAT_* of a weight; 0: any, or none is read */
  uint32_t level;  /* BITNET_LEVEL_*   */
  uint32_t exact;  /* BITNET_EXACT_*   */
  /* BITNET_PRECISION_*; a kernel with another one than f32 runs only in programs that permit it. */
  uint32_t precision;
  char id[64];
} bitnet_kernel_info;

/* What a device is doing now; see device_status. `known` lists the members that the plugin filled
 * in; the values of the others have no meaning. */
#define BITNET_STATUS_MEMORY 1u /* memory_total_bytes, memory_free_bytes        */
#define BITNET_STATUS_POOL 2u   /* pool_bytes, pool_used_bytes                  */
#define BITNET_STATUS_UTILISATION 4u
#define BITNET_STATUS_TEMPERATURE 8u
#define BITNET_STATUS_POWER 16u
#define BITNET_STATUS_CLOCK 32u
#define BITNET_STATUS_MEMORY_CLOCK 64u
#define BITNET_STATUS_THROTTLED 128u
#define BITNET_STATUS_ECC 256u /* ecc_corrected, ecc_uncorrected               */
#define BITNET_STATUS_HEALTH 512u
#define BITNET_STATUS_POOL_USE 1024u /* pool_peak_bytes, pool_hits, pool_misses     */

#define BITNET_THROTTLED_POWER 1u
#define BITNET_THROTTLED_HEAT 2u
#define BITNET_THROTTLED_OTHER 4u

#define BITNET_HEALTH_GOOD 1u
#define BITNET_HEALTH_DEGRADED 2u /* it computes, but needs attention */
#define BITNET_HEALTH_LOST 3u

typedef struct bitnet_device_status {
  uint32_t struct_size;
  uint32_t known; /* BITNET_STATUS_* */
  uint64_t memory_total_bytes;
  uint64_t memory_free_bytes; /* excludes memory that other programs use       */
  uint64_t pool_bytes;        /* that the driver allocated for the plugin      */
  uint64_t pool_used_bytes;   /* the part that objects of the core use         */
  uint32_t utilisation_percent;
  int32_t temperature_millicelsius;
  uint32_t power_milliwatts;
  uint32_t clock_khz; /* of the units that compute */
  uint32_t memory_clock_khz;
  uint32_t throttled; /* BITNET_THROTTLED_* */
  uint64_t ecc_corrected;
  uint64_t ecc_uncorrected;
  uint32_t health; /* BITNET_HEALTH_* */
  uint32_t reserved_0;
  uint64_t pool_peak_bytes; /* the most that steps and activations used        */
  uint64_t pool_hits;       /* requests for a buffer that the pool served      */
  uint64_t pool_misses;     /* requests for which the driver allocated         */
} bitnet_device_status;

#endif /* BITNET_ABI_INFO_H */
