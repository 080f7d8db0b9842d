/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* bitnet/abi/packed.h - optional interface: second forms of weights that the host may keep.
 *
 * Some kernels read a weight in a second form, which the backend computes from the sealed weight.
 * With this interface the host stores that form and passes it to the backend at the next start, so
 * that the backend need not compute it again. A backend without the interface works, but starts
 * more slowly. */
#ifndef BITNET_ABI_PACKED_H
#define BITNET_ABI_PACKED_H

#include "bitnet/abi/backend.h"

#define BITNET_INTERFACE_PACKED_WEIGHTS "bitnet.packed-weights"

typedef struct bitnet_packed_info {
  uint32_t struct_size;
  uint32_t reserved_0;
  uint64_t bytes;           /* 0: the weight has no second form */
  uint64_t alignment_bytes; /* required of adopted memory       */
  /* The same weight and the same id give the same bytes, on any machine and in any version. */
  char layout_id[64];
} bitnet_packed_info;

typedef struct bitnet_packed_weights_v1 {
  bitnet_interface_header header; /* version 1 */

  /* Describes the second form of sealed weight `index`.
   * Fails: BITNET_INVALID_ARGUMENT past the last weight or before its seal. [any] [short] */
  bitnet_status (*describe)(bitnet_weights* weights, uint32_t index, bitnet_packed_info* out,
                            bitnet_error* err);
  /* Computes the form unless it exists. Writes its address, which is valid until weights_destroy.
   * Fails: as describe, BITNET_UNSUPPORTED if the weight has no such form, BITNET_CANCELLED.
   * [device] [long] */
  bitnet_status (*pack)(bitnet_weights* weights, uint32_t index, const void** out,
                        bitnet_error* err);
  /* Uses the caller's memory as the form. The memory stays readable and unchanged until
   * weights_destroy; the host is responsible for its content.
   * Fails: as describe, BITNET_UNSUPPORTED if the weight has no such form, BITNET_INVALID_ARGUMENT
   * for another size or alignment and if the form exists already. [device] [short] */
  bitnet_status (*adopt)(bitnet_weights* weights, uint32_t index, const void* data, uint64_t bytes,
                         bitnet_error* err);
} bitnet_packed_weights_v1;

#endif /* BITNET_ABI_PACKED_H */
