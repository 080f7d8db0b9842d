/* SPDX-License-Identifier: Apache-2.0 */
/* Every primitive, for each format that its weight may have. */
#include "kernels.h"

enum { same = BITNET_EXACT_BATCH | BITNET_EXACT_RUN, whole = same | BITNET_EXACT_INTEGER };

#define OF(op, format, exact, function, id) \
  {BITNET_OP_##op, BITNET_FORMAT_##format, exact, id, function}
#define ANY_DENSE(op, function, id)                                                           \
  OF(op, F32, same, function, id ".f32.c"), OF(op, F16, same, function, id ".f16.c"),         \
      OF(op, BF16, same, function, id ".bf16.c"), OF(op, Q8_0, same, function, id ".q8_0.c"), \
      OF(op, Q4_0, same, function, id ".q4_0.c"), OF(op, Q4_K, same, function, id ".q4_k.c"), \
      OF(op, Q6_K, same, function, id ".q6_k.c")

const struct kernel all_kernels[] = {
    ANY_DENSE(EMBED_GATHER, embed_gather, "embed_gather"),
    OF(EMBED_GATHER, TERNARY2, same, embed_gather, "embed_gather.ternary2.c"),
    OF(RMS_NORM, F32, same, rms_norm, "rms_norm.f32.c"),
    OF(RMS_NORM_HEADS, F32, same, rms_norm_heads, "rms_norm_heads.f32.c"),
    OF(ACT_QUANT_I8, NONE, whole, act_quant_i8, "act_quant_i8.c"),
    OF(ACT_QUANT_I8_GROUPED, NONE, whole, act_quant_i8_grouped, "act_quant_i8_grouped.c"),
    OF(LINEAR_TERNARY, TERNARY2, whole, linear_ternary, "linear_ternary.ternary2.c"),
    OF(LINEAR_TERNARY_GROUPED, TERNARY2, whole, linear_ternary_grouped,
       "linear_ternary_grouped.ternary2.c"),
    ANY_DENSE(LINEAR_DENSE, linear_dense, "linear_dense"),
    OF(HADAMARD, NONE, same, hadamard, "hadamard.c"),
    OF(HADAMARD, F32, same, hadamard, "hadamard.f32.c"),
    OF(ROPE, NONE, same, rope, "rope.c"),
    OF(ROPE, F32, same, rope, "rope.f32.c"),
    OF(KV_WRITE, NONE, same, kv_write, "kv_write.c"),
    OF(ATTN_PAGED, NONE, same, attn_paged, "attn_paged.c"),
    OF(ADD, NONE, same, add, "add.c"),
    OF(MUL, NONE, same, mul, "mul.c"),
    OF(RELU2, NONE, same, relu2, "relu2.c"),
    OF(SILU, NONE, same, silu, "silu.c"),
    OF(GELU, NONE, same, gelu, "gelu.c"),
    OF(SIGMOID, NONE, same, sigmoid, "sigmoid.c"),
    OF(SCALE, NONE, same, scale, "scale.c"),
    OF(COLUMNS, NONE, same, columns, "columns.c"),
    OF(SHORT_CONV, F32, same, short_conv, "short_conv.f32.c"),
    OF(DELTA_GATES, F32, same, delta_gates, "delta_gates.f32.c"),
    OF(DELTA_RULE, NONE, same, delta_rule, "delta_rule.c"),
    OF(GATHER_ROWS, NONE, same, gather_rows, "gather_rows.c"),
};
const uint32_t n_kernels = sizeof all_kernels / sizeof all_kernels[0];
const uint32_t attention_flags = BITNET_ATTENTION_WINDOW | BITNET_ATTENTION_LAYER_WINDOW;
