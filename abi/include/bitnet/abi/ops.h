/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* bitnet/abi/ops.h - the units of model arithmetic and their exact definitions.
 *
 * T tokens in a step, O rows whose logits are needed, K input width, M output width. Activations
 * are f32 unless stated otherwise; rows are contiguous. The meaning of an id is frozen: another
 * meaning gets another id.
 *
 * BITNET_OP_LIST is the only list of ops: X(NAME, id, inputs, weights, outputs, ints, floats). The
 * last two numbers count the attributes that the op has, beginning with ints[0] and floats[0]. The
 * weights of ROPE and HADAMARD are optional, all others are required.
 *
 * Primitives
 *   EMBED_GATHER    row tokens[t] of weight 0 (n_vocab x K), any format -> f32 (T, K)
 *   RMS_NORM        x * (1 / sqrtf(mean + eps)) * weight 0, f32 (K); the sum of squares in double,
 *                   mean and the rest in f32. floats[0] = eps -> (rows, K)
 *   ACT_QUANT_I8    a = max |x_k| per row, s = 127 / max(a, 1e-5) in f32,
 *                   q = clamp(round-half-even(x * s), -128, 127) -> q i8 (rows, K), s f32 (rows)
 *   LINEAR_TERNARY  inputs q, s; weight 0 ternary (M x K). One scale:
 *                   y = (f32)sum_k(t*q) / s * scale. Scale groups:
 *                   y = sum_g((f32)sum_{k in g}(t*q) * scale_g) / s, g ascending, in f32.
 *                   Integer sums are exact in int32 -> f32 (rows, M)
 *   ACT_QUANT_I8_GROUPED  for each group of ints[0] = 32, 64 or 128 elements of a row, in f32:
 *                   a = max(max |x_k|, 1e-30), d = a / 127,
 *                   q = clamp(round-half-even(x * (127 / a)), -127, 127)
 *                   -> q i8 (rows, K), d f32 (rows, K / ints[0])
 *   LINEAR_TERNARY_GROUPED  inputs q, d; weight 0 ternary (M x K), scales for groups or one.
 *                   The length of a group of q divides that of a group of scales, or the
 *                   reverse. A group of scales has a multiple of 32 elements, and is at most 8192
 *                   elements or exactly a row long; one scale for all counts as groups of a row.
 *                   Let p be the factors (d or scales) of the shorter groups and r those of the
 *                   longer ones; if both are equally long, p is d:
 *                   y = sum_r(sum_p((f32)sum_k(t*q) * p) * r), each sum from +0, ascending, in f32.
 *                   Integer sums are exact in int32 -> f32 (rows, M)
 *   RMS_NORM_HEADS  RMS_NORM of each of ints[0] heads by itself; weight 0 has K / ints[0] elements
 *                   -> (rows, K)
 *   HADAMARD        with H of ints[0] elements, a power of two that divides K: each such block of x
 *                   is multiplied by H[i][j] = (-1)^popcount(i & j) / sqrt(ints[0]). For d = 1, 2,
 *                   4 .. ints[0] / 2 the pairs (i, i + d) with (i & d) == 0 become their sum and
 *                   their difference; then all are multiplied by (f32)(1 / sqrt(ints[0])), in f32
 *                   throughout. The optional weight 0 has K factors f32, which multiply the
 *                   elements of x (ints[1] = BITNET_HADAMARD_FACTORS_FIRST) or those of the
 *                   product with H (.._LAST). ints[0] <= 65536 -> (rows, K)
 *   LINEAR_DENSE    y = W x, weight 0 of any dense format (M x K) -> f32 (rows, M)
 *   ROPE            rotates the first ints[2] dimensions of each of ints[0] heads of ints[1]
 *                   dimensions by position * floats[1] * floats[0]^(-2i/ints[2]), divided by weight
 *                   0 element i if there is a weight (rope_freqs, f32). ints[3] = BITNET_ROPE_*
 *   KV_WRITE        inputs k, v (T, n_kv_heads * head_dim): stores row t at slots[t] of layer
 *                   ints[0], converted to the pool's dtype (round to nearest even)
 *   ATTN_PAGED      input q (T, n_heads * head_dim): causal softmax attention of token t over the
 *                   positions 0..positions[t] of its own sequence, found through its block table.
 *                   A window of the step (bitnet_step) leaves some of these out. If ints[4] is not
 *                   0, token t attends only to those with p > positions[t] - ints[4]; this needs a
 *                   device with BITNET_ATTENTION_LAYER_WINDOW.
 *                   ints = {layer, n_heads, n_kv_heads, head_dim, window}, floats[0] = scale
 *   ADD, MUL        element by element, same shapes
 *   RELU2           max(x, 0)^2
 *   SILU            x / (1 + exp(-x))
 *   GELU            the approximation with tanh, written without a difference that cancels:
 *                   x / (1 + exp(-x * (a + b * x^2))) with a = 2 * sqrt(2 / pi), b = 0.044715 * a
 *   SCALE           x * floats[0]
 *   SIGMOID         1 / (1 + exp(-x))
 *   COLUMNS         parts of a row, side by side. ints = {length, first, inner, inner stride,
 *                   outer, outer stride}: for a < outer and b < inner, part a * inner + b is the
 *                   `length` elements from first + a * outer stride + b * inner stride on
 *                   -> (rows, outer * inner * length)
 *   SHORT_CONV      y[t][c] = sum_{i < n} w[c][i] * x[t + 1 - n + i][c], i ascending, over the rows
 *                   of token t's own sequence; weight 0 f32 (K x n), n from 2 to 32. The state
 *                   has the last n - 1 rows before the step, oldest first: (n - 1, K) from element
 *                   ints[0] on -> f32 (T, K)
 *   DELTA_GATES     of H heads, inputs a and b (T, H): decay exp(factor * softplus(a + bias)), then
 *                   1 / (1 + exp(-b)). Weight 0 f32 (2 x H): the factors, then the biases;
 *                   softplus(z) = max(z, 0) + log1p(exp(-|z|)) -> f32 (T, 2 * H)
 *   DELTA_RULE      the gated delta rule. Inputs x (T, 2 * n_k * d_k + n_v * d_v): heads of
 *                   queries, of keys, of values; g (T, 2 * n_v) of DELTA_GATES. ints = {element,
 *                   n_k, n_v, d_k, d_v, BITNET_DELTA_*}, floats = {scale, eps}. For value head h:
 *                   q and k are those of the head that BITNET_DELTA_* assigns to h, each times
 *                   1 / sqrtf(sum of its squares + eps), the sum in double; q also times scale. v,
 *                   decay and beta are those of h. S (d_k, d_v) begins at element ints[0] + h *
 *                   d_k * d_v of the state. For each token of a sequence in turn, in f32, sums over
 *                   i ascending:
 *                   S_ij = S_ij * decay, u_j = beta * (v_j - sum_i(k_i * S_ij)),
 *                   S_ij = S_ij + k_i * u_j, y_j = sum_i(q_i * S_ij) -> f32 (T, n_v * d_v)
 *   GATHER_ROWS     the rows output_rows[o] of x -> (O, K)
 *
 * Facts of a step, by ports of the graph (program.h), are read by EMBED_GATHER (tokens), ROPE
 * (positions), KV_WRITE (slots), ATTN_PAGED (positions, sequences, block tables), GATHER_ROWS
 * (output rows), SHORT_CONV and DELTA_RULE (positions, sequences, states). There are T rows unless
 * stated otherwise, or as many as a value of a port VALUE_IN has.
 *
 * State: SHORT_CONV and DELTA_RULE read a part of the state (bitnet_kv_config) of each sequence
 * and replace it by the one that its next step reads. If the first token of a sequence in the step
 * has position 0, its state counts as zeros. Parts of two ops do not overlap.
 *
 * Precision: LINEAR_DENSE, ATTN_PAGED and the f32 parts of the others are computed in f32. If a
 * program permits it (bitnet_program_options::precisions), a kernel that declares it may round each
 * factor of a product to tf32 (2^-11), f16 (2^-11; values above 65504 become infinite) or bf16
 * (2^-8), and sum in f32. y then differs from the result above by at most twice that bound times
 * the sum of |factor * factor|. Integer sums stay exact.
 *
 * A composite is followed by its body, the body_count ops that define it. Its weights and
 * attributes are those of the body, its inputs the values that the body reads and does not write,
 * its outputs the body's final values. A plugin that knows the composite with this body may run one
 * kernel for it; any other plugin runs the body. Ops in brackets are optional. The grouped forms of
 * ACT_QUANT_I8 and LINEAR_TERNARY may replace these.
 *   BIT_LINEAR      ACT_QUANT_I8, LINEAR_TERNARY                                 x -> y
 *   QKV_ROPE_KV     RMS_NORM, ACT_QUANT_I8, LINEAR_TERNARY q, k, v, [RMS_NORM_HEADS q,
 *                   RMS_NORM_HEADS k], ROPE q, ROPE k, KV_WRITE                  x -> q
 *   ATTN_OUT        ATTN_PAGED, [RMS_NORM], ACT_QUANT_I8, LINEAR_TERNARY, ADD    q, x -> x'
 *   FFN_RELU2_GATED RMS_NORM, ACT_QUANT_I8, LINEAR_TERNARY gate, up, RELU2, MUL, [RMS_NORM],
 *                   ACT_QUANT_I8, LINEAR_TERNARY, ADD                            x -> x'
 *   FFN_SILU_GATED  the same with SILU
 *   LM_HEAD         GATHER_ROWS, RMS_NORM, LINEAR_DENSE                          x -> logits
 *
 * Source  BitNet b1.58, arXiv:2402.17764; BitNet b1.58 2B4T, arXiv:2504.12285; the delta rule
 *         Gated Delta Networks, arXiv:2412.06464.
 */
#ifndef BITNET_ABI_OPS_H
#define BITNET_ABI_OPS_H

#define BITNET_OP_LIST(X)                      \
  X(EMBED_GATHER, 1, 0, 1, 1, 0, 0)            \
  X(RMS_NORM, 2, 1, 1, 1, 0, 1)                \
  X(ACT_QUANT_I8, 3, 1, 0, 2, 0, 0)            \
  X(LINEAR_TERNARY, 4, 2, 1, 1, 0, 0)          \
  X(LINEAR_DENSE, 5, 1, 1, 1, 0, 0)            \
  X(ROPE, 6, 1, 1, 1, 4, 2)                    \
  X(KV_WRITE, 7, 2, 0, 0, 1, 0)                \
  X(ATTN_PAGED, 8, 1, 0, 1, 5, 1)              \
  X(ADD, 9, 2, 0, 1, 0, 0)                     \
  X(MUL, 10, 2, 0, 1, 0, 0)                    \
  X(RELU2, 11, 1, 0, 1, 0, 0)                  \
  X(SILU, 12, 1, 0, 1, 0, 0)                   \
  X(GATHER_ROWS, 13, 1, 0, 1, 0, 0)            \
  X(RMS_NORM_HEADS, 14, 1, 1, 1, 1, 1)         \
  X(ACT_QUANT_I8_GROUPED, 15, 1, 0, 2, 1, 0)   \
  X(LINEAR_TERNARY_GROUPED, 16, 2, 1, 1, 0, 0) \
  X(HADAMARD, 17, 1, 1, 1, 2, 0)               \
  X(GELU, 18, 1, 0, 1, 0, 0)                   \
  X(SCALE, 19, 1, 0, 1, 0, 1)                  \
  X(SIGMOID, 20, 1, 0, 1, 0, 0)                \
  X(COLUMNS, 21, 1, 0, 1, 6, 0)                \
  X(SHORT_CONV, 22, 1, 1, 1, 1, 0)             \
  X(DELTA_GATES, 23, 2, 1, 1, 0, 0)            \
  X(DELTA_RULE, 24, 2, 0, 1, 6, 2)             \
  X(BIT_LINEAR, 256, 1, 0, 1, 0, 0)            \
  X(QKV_ROPE_KV, 257, 1, 0, 1, 0, 0)           \
  X(ATTN_OUT, 258, 2, 0, 1, 0, 0)              \
  X(FFN_RELU2_GATED, 259, 1, 0, 1, 0, 0)       \
  X(FFN_SILU_GATED, 260, 1, 0, 1, 0, 0)        \
  X(LM_HEAD, 261, 1, 0, 1, 0, 0)

#define BITNET_OP_FIRST_COMPOSITE 256u

#define BITNET_OP_DEFINE_(name, id, inputs, weights, outputs, ints, floats) BITNET_OP_##name = id,
enum { BITNET_OP_LIST(BITNET_OP_DEFINE_) BITNET_OP_NONE = 0 };
#undef BITNET_OP_DEFINE_

#define BITNET_ROPE_NEOX 0        /* pairs (i, i + dims/2) */
#define BITNET_ROPE_INTERLEAVED 1 /* pairs (2i, 2i + 1)    */

#define BITNET_HADAMARD_FACTORS_FIRST 0
#define BITNET_HADAMARD_FACTORS_LAST 1

#define BITNET_DELTA_BLOCKS 0 /* value head h has head h / (n_v / n_k) of queries and keys */
#define BITNET_DELTA_TURNS 1  /* value head h has head h % n_k                             */

#endif /* BITNET_ABI_OPS_H */
