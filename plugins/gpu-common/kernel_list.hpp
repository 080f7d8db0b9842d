#pragma once
// The kernels of GPU plugins: X(name, read, written). The first `read` bindings are read, the step
// header before all; the last `written` ones are written, or read and written. kernels.hpp has the
// rest of each: what is bound, the parameters, and what it computes.
//
// The enum, the names, the counts and the plugins' lists of kernel sources are made of these rows.
// kernels.cmake reads this file, so each row stands on a line of its own.

// Kernels that every plugin brings. norm_quant, glu_quant and bit_linear fuse several ops: rms_norm
// and act_quant; relu2, silu or gelu, mul, [rms_norm] and act_quant; and, for steps of one row,
// [rms_norm], act_quant, linear_ternary and [add].
#define BITNET_GPU_KERNELS_OF_ALL(X) \
  X(embed_gather, 4, 1)              \
  X(rms_norm, 3, 1)                  \
  X(act_quant, 2, 2)                 \
  X(act_quant_groups, 2, 2)          \
  X(hadamard, 3, 1)                  \
  X(linear_ternary, 6, 1)            \
  X(linear_dense, 3, 1)              \
  X(rope, 3, 1)                      \
  X(kv_write, 5, 2)                  \
  X(attn_paged, 7, 1)                \
  X(elementwise, 3, 1)               \
  X(gather_rows, 3, 1)               \
  X(columns, 2, 1)                   \
  X(short_conv, 6, 2)                \
  X(delta_gates, 4, 1)               \
  X(delta_rule, 6, 2)                \
  X(norm_quant, 3, 2)                \
  X(glu_quant, 4, 3)                 \
  X(bit_linear, 6, 1)

// Kernels that some plugins bring, as members of `capabilities` say: attention by tiles if
// attention_rows is not 0, the two-stage head if has_top_head, products with rounded activations by
// precisions, attention with rounded factors by rounded_heads. norm_quant_groups and
// glu_quant_groups, if fuses_groups, fuse act_quant_groups with rms_norm, and with mul and relu2,
// silu or gelu.
#define BITNET_GPU_KERNELS_OF_SOME(X) \
  X(attn_tiles, 7, 1)                 \
  X(attn_merge, 3, 1)                 \
  X(attn_token, 11, 5)                \
  X(head_copy, 2, 2)                  \
  X(head_state, 2, 2)                 \
  X(head_approximate, 4, 2)           \
  X(head_count, 2, 1)                 \
  X(head_exact, 5, 3)                 \
  X(round_rows, 2, 1)                 \
  X(linear_dense_rounded, 3, 1)       \
  X(attn_rounded, 7, 1)               \
  X(norm_quant_groups, 3, 2)          \
  X(glu_quant_groups, 3, 2)

#define BITNET_GPU_KERNELS(X) BITNET_GPU_KERNELS_OF_ALL(X) BITNET_GPU_KERNELS_OF_SOME(X)
