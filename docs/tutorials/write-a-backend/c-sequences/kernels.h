/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of kernels give to the list of them, and to one another. */
#ifndef KERNELS_H
#define KERNELS_H

#include "plain.h"

/* ---- formats.c ---- */

/* n elements of a format from `first` on, both of which are multiples of its block; of ternary
 * rows -1, 0 and 1 without their scale. */
void decode(uint32_t format, const unsigned char* row, uint64_t first, uint64_t n, float* out);

/* The same of what a pool keeps of n elements of a head, which are of a BITNET_DTYPE_*. */
void read_head(uint32_t dtype, const unsigned char* from, uint64_t n, float* out);
void write_head(uint32_t dtype, const float* x, uint64_t n, unsigned char* to);

/* -1, 0 or 1: element k of a ternary row. */
int ternary_at(const unsigned char* row, uint64_t k);

/* ---- facts.c ---- */

/* Whether a token at `position` looks at one at `p` of its own sequence, as the step's window has
 * it. */
bool sees(const struct facts* f, int64_t position, int64_t p);

/* ---- the kernels ---- */

typedef void kernel_function(const struct work* w);

/* rows.c */
kernel_function embed_gather, rms_norm, rms_norm_heads, act_quant_i8, act_quant_i8_grouped,
    hadamard, add, mul, relu2, silu, gelu, sigmoid, scale, columns, gather_rows;
/* products.c */
kernel_function linear_ternary, linear_ternary_grouped, linear_dense;
/* attention.c */
kernel_function rope, kv_write, attn_paged;
/* recurrent.c */
kernel_function short_conv, delta_gates, delta_rule;

#endif /* KERNELS_H */
