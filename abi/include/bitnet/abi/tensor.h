/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* bitnet/abi/tensor.h - weight tensors as the core hands them to a plugin. */
#ifndef BITNET_ABI_TENSOR_H
#define BITNET_ABI_TENSOR_H

#include "bitnet/abi/base.h"

/* Element types of activations. */
#define BITNET_DTYPE_F32 1u
#define BITNET_DTYPE_F16 2u
#define BITNET_DTYPE_I8 3u
#define BITNET_DTYPE_I32 4u
/* In KV pools only: blocks of 32 consecutive elements of one head, 34 bytes each:
 * f16 d, then i8 q[32], as in GGUF; element i is (f32)d * q[i].
 * Conversion: m = max |x_i|, d = (f16)min(m / 127, 65504), q_i = 0 where d is 0, else
 * clamp(round-half-even(x_i * (1 / (f32)d)), -127, 127), all in f32. NaN counts as 0 in m. */
#define BITNET_DTYPE_Q8_0 5u
#define BITNET_Q8_0_BLOCK 32u       /* elements */
#define BITNET_Q8_0_BLOCK_BYTES 34u /* of a block */
/* In KV pools only: blocks of 32 consecutive elements of one head, 18 bytes each: f16 d, then
 * 16 bytes, of which byte i has the code q of element i in bits 3:0 and that of element i + 16 in
 * bits 7:4, as in GGUF; an element is (f32)d * (q - 8).
 * Conversion: e = 0, then x_i wherever |x_i| > |e|, i ascending; s = clamp(e / -8, -65504, 65504),
 * d = (f16)s, q_i = 8 where d is 0, else floor(clamp(x_i * (1 / s) + 8.5, 0, 15)), all in f32,
 * with product and sum each rounded. */
#define BITNET_DTYPE_Q4_0 6u
#define BITNET_Q4_0_BLOCK 32u       /* elements */
#define BITNET_Q4_0_BLOCK_BYTES 18u /* of a block */

/* Weight formats. All but TERNARY2 are byte for byte those of GGUF, rows packed without padding. */
#define BITNET_FORMAT_NONE 0u
#define BITNET_FORMAT_F32 1u
#define BITNET_FORMAT_F16 2u
#define BITNET_FORMAT_BF16 3u
#define BITNET_FORMAT_Q8_0 4u
#define BITNET_FORMAT_Q4_0 5u
#define BITNET_FORMAT_Q4_K 6u
#define BITNET_FORMAT_Q6_K 7u
/* The canonical ternary form. A row is ceil(K/128) groups of 32 bytes; byte p of a group holds the
 * elements p, p+32, p+64, p+96 of that group in bits 7:6, 5:4, 3:2, 1:0, each as t + 1 (0, 1, 2);
 * elements past K hold 1. Code 3 never occurs. When K % 128 == 0 this is I2_S layout A without its
 * trailing scale, so such a tensor can alias the model file. */
#define BITNET_FORMAT_TERNARY2 8u

/* Shapes  ne[0] = K, the input width, contiguous; ne[1] = M, the output rows; unused ne are 1.
 * Scales  ternary only: element (r, k) is t * scales[i], with i = 0 if scale_group is 0 and
 *         i = (r * K + k) / scale_group otherwise; K % scale_group == 0.
 * Life    `scales` and `name` are borrowed for the call. */
typedef struct bitnet_tensor_desc {
  uint32_t struct_size;
  uint32_t format; /* BITNET_FORMAT_* */
  uint32_t rank;   /* 1 or 2          */
  uint32_t reserved_0;
  int64_t ne[4];
  uint64_t data_bytes;
  uint64_t scale_group; /* elements along K that share a scale; 0 = the whole tensor */
  uint64_t n_scales;
  const float* scales; /* (n_scales) */
  bitnet_str name;
} bitnet_tensor_desc;

/* How a plugin will store one tensor. */
typedef struct bitnet_weight_plan {
  uint32_t struct_size;
  uint32_t accepts_alias; /* non-zero: weight_alias may pass the caller's memory, without a copy */
  uint64_t packed_bytes;  /* memory that the packed form takes, 0 when aliased                 */
  uint64_t alignment_bytes; /* required of aliased memory                                     */
  char layout_id[64];       /* names the packed form, e.g. "cpu/ternary2-rows/1"                 */
} bitnet_weight_plan;

#endif /* BITNET_ABI_TENSOR_H */
