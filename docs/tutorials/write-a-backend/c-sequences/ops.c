/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an op is one that bitnet/abi/ops.h defines: its shapes, element types and attributes. */
#include <math.h>

#include "kernels.h"

/* What an op works on. Rows and k are those of its first input. */
struct fit {
  struct bitnet_program* p;
  const bitnet_op* o;
  const struct tensor* weight;
  int64_t rows;
  uint64_t k;
  uint64_t state_end;
};

static bool shaped(const struct fit* f, uint32_t value, uint32_t dtype, int64_t rows,
                   uint64_t width) {
  const struct value* v = &f->p->values[value];
  return v->dtype == dtype && v->rows == rows && v->width == width;
}

/* Input or output i has rows of so many f32. */
static bool in_f32(const struct fit* f, uint32_t i, int64_t rows, uint64_t width) {
  return shaped(f, f->o->inputs[i], BITNET_DTYPE_F32, rows, width);
}

static bool out_f32(const struct fit* f, uint32_t i, int64_t rows, uint64_t width) {
  return shaped(f, f->o->outputs[i], BITNET_DTYPE_F32, rows, width);
}

/* From (rows, k) to (rows, width). */
static bool maps(const struct fit* f, uint64_t width) {
  return in_f32(f, 0, f->rows, f->k) && out_f32(f, 0, f->rows, width);
}

/* The weight, of which kernels.c says the format, has m rows of k. */
static bool weighs(const struct fit* f, uint64_t m, uint64_t k) {
  return f->weight->m == m && f->weight->k == k;
}

static void need_scratch(const struct fit* f, uint64_t floats) {
  if (floats > f->p->scratch_floats) f->p->scratch_floats = floats;
}

static bool fits_embedding(const struct fit* f) {
  if (f->weight->m < f->p->vocabulary) f->p->vocabulary = f->weight->m;
  return out_f32(f, 0, BITNET_DIM_TOKENS, f->weight->k);
}

static bool fits_norm(const struct fit* f, int32_t heads) {
  return heads > 0 && f->k % (uint64_t)heads == 0 && weighs(f, 1, f->k / (uint64_t)heads) &&
         maps(f, f->k);
}

static bool is_group(uint64_t n) {
  return n == 32 || n == 64 || n == 128;
}

static bool fits_quantiser(const struct fit* f, uint64_t group) {
  return in_f32(f, 0, f->rows, f->k) &&
         shaped(f, f->o->outputs[0], BITNET_DTYPE_I8, f->rows, f->k) && f->k % group == 0 &&
         out_f32(f, 1, f->rows, f->k / group);
}

static bool fits_ternary(const struct fit* f, uint64_t factors) {
  const uint64_t k = f->k, m = f->weight->m;
  need_scratch(f, k / sizeof(float) + 1);
  return weighs(f, m, k) && shaped(f, f->o->inputs[0], BITNET_DTYPE_I8, f->rows, k) &&
         in_f32(f, 1, f->rows, factors) && out_f32(f, 0, f->rows, m);
}

static bool fits_grouped(const struct fit* f) {
  const uint64_t k = f->k, factors = f->p->values[f->o->inputs[1]].width;
  const uint64_t scales = f->weight->scale_group == 0 ? k : f->weight->scale_group;
  return k % factors == 0 && is_group(k / factors) &&
         (scales == k || (scales % 32 == 0 && scales <= 8192)) &&
         (scales % (k / factors) == 0 || k / factors % scales == 0) && fits_ternary(f, factors);
}

static bool fits_dense(const struct fit* f) {
  need_scratch(f, f->k);
  return weighs(f, f->weight->m, f->k) && maps(f, f->weight->m);
}

static bool fits_hadamard(const struct fit* f) {
  const uint32_t block = (uint32_t)f->o->ints[0];
  return block >= 2 && block <= 65536 && (block & (block - 1)) == 0 && f->k % block == 0 &&
         (!f->weight || weighs(f, 1, f->k)) && maps(f, f->k);
}

static bool fits_rope(const struct fit* f) {
  const int64_t heads = f->o->ints[0], head_dim = f->o->ints[1], turned = f->o->ints[2];
  const float base = f->o->floats[0], factor = f->o->floats[1];
  return heads > 0 && head_dim > 0 && (uint64_t)(heads * head_dim) == f->k && turned >= 2 &&
         turned % 2 == 0 && turned <= head_dim && base > 0 && isfinite(base) && isfinite(factor) &&
         (!f->weight || weighs(f, 1, (uint64_t)turned / 2)) && f->rows == BITNET_DIM_TOKENS &&
         maps(f, f->k);
}

/* All layers of a pool are alike. */
static bool fits_pool(const struct fit* f, uint64_t width) {
  const int32_t layer = f->o->ints[0];
  if (layer < 0 || layer >= 1 << 16 || (f->p->kv_width != 0 && f->p->kv_width != width))
    return false;
  f->p->kv_width = width;
  if ((uint64_t)layer >= f->p->kv_layers) f->p->kv_layers = (uint64_t)layer + 1;
  return true;
}

static bool fits_write(const struct fit* f) {
  return in_f32(f, 0, BITNET_DIM_TOKENS, f->k) && in_f32(f, 1, BITNET_DIM_TOKENS, f->k) &&
         fits_pool(f, f->k);
}

static bool fits_attention(const struct fit* f) {
  const int64_t heads = f->o->ints[1], kv_heads = f->o->ints[2], head_dim = f->o->ints[3];
  const bitnet_program_options* b = &f->p->bounds;
  if (heads < 1 || kv_heads < 1 || head_dim < 1 || heads % kv_heads != 0 ||
      (uint64_t)(heads * head_dim) != f->k || f->o->ints[4] < 0 || f->rows != BITNET_DIM_TOKENS ||
      !maps(f, f->k) || (f->p->n_kv_heads != 0 && f->p->n_kv_heads != (uint64_t)kv_heads))
    return false;
  f->p->n_kv_heads = (uint64_t)kv_heads;
  /* The positions that a token sees, their scores, and a key or a value. */
  need_scratch(f, 2 * (uint64_t)b->max_blocks * b->block_tokens + (uint64_t)head_dim);
  return fits_pool(f, (uint64_t)(kv_heads * head_dim));
}

static bool fits_columns(const struct fit* f) {
  const int64_t length = f->o->ints[0], first = f->o->ints[1], inner = f->o->ints[2];
  const int64_t step = f->o->ints[3], outer = f->o->ints[4], outer_step = f->o->ints[5];
  const int64_t k = (int64_t)f->k;
  if (length < 1 || inner < 1 || outer < 1 || first < 0 || step < 0 || outer_step < 0) return false;
  /* No product of two i32 is out of range, and the sum is of what is within a row. */
  if ((inner - 1) * step > k || (outer - 1) * outer_step > k ||
      first + (inner - 1) * step + (outer - 1) * outer_step + length > k ||
      inner * outer > INT32_MAX || inner * outer * length > INT32_MAX)
    return false;
  return maps(f, (uint64_t)(inner * outer * length));
}

/* Notes the part of a state that is the op's. */
static bool fits_state(struct fit* f, uint64_t elements) {
  const int32_t first = f->o->ints[0];
  if (first < 0 || elements > UINT32_MAX - (uint64_t)first) return false;
  f->state_end = (uint64_t)first + elements;
  if (f->state_end > f->p->state_elements) f->p->state_elements = f->state_end;
  return true;
}

static bool fits_conv(struct fit* f) {
  const uint64_t n = f->weight->k;
  return n >= 2 && n <= 32 && weighs(f, f->k, n) && f->rows == BITNET_DIM_TOKENS && maps(f, f->k) &&
         fits_state(f, (n - 1) * f->k);
}

static bool fits_gates(const struct fit* f) {
  return weighs(f, 2, f->k) && in_f32(f, 0, BITNET_DIM_TOKENS, f->k) &&
         in_f32(f, 1, BITNET_DIM_TOKENS, f->k) && out_f32(f, 0, BITNET_DIM_TOKENS, 2 * f->k);
}

static bool fits_delta(struct fit* f) {
  const int32_t* is = f->o->ints;
  const float scale = f->o->floats[0], eps = f->o->floats[1];
  for (uint32_t i = 1; i < 5; ++i)
    if (is[i] < 1 || is[i] > 1 << 16) return false;
  const uint64_t n_k = (uint64_t)is[1], n_v = (uint64_t)is[2], d_k = (uint64_t)is[3];
  const uint64_t d_v = (uint64_t)is[4];
  return n_v % n_k == 0 && isfinite(scale) && isfinite(eps) && eps >= 0 &&
         in_f32(f, 0, BITNET_DIM_TOKENS, 2 * n_k * d_k + n_v * d_v) &&
         in_f32(f, 1, BITNET_DIM_TOKENS, 2 * n_v) && out_f32(f, 0, BITNET_DIM_TOKENS, n_v * d_v) &&
         fits_state(f, n_v * d_k * d_v);
}

static bool fits(struct fit* f) {
  switch (f->o->op) {
    case BITNET_OP_EMBED_GATHER:
      return fits_embedding(f);
    case BITNET_OP_RMS_NORM:
      return fits_norm(f, 1);
    case BITNET_OP_RMS_NORM_HEADS:
      return fits_norm(f, f->o->ints[0]);
    case BITNET_OP_ACT_QUANT_I8:
      return fits_quantiser(f, f->k);
    case BITNET_OP_ACT_QUANT_I8_GROUPED:
      return is_group((uint64_t)f->o->ints[0]) && fits_quantiser(f, (uint64_t)f->o->ints[0]);
    case BITNET_OP_LINEAR_TERNARY:
      return fits_ternary(f, 1);
    case BITNET_OP_LINEAR_TERNARY_GROUPED:
      return fits_grouped(f);
    case BITNET_OP_LINEAR_DENSE:
      return fits_dense(f);
    case BITNET_OP_HADAMARD:
      return fits_hadamard(f);
    case BITNET_OP_ROPE:
      return fits_rope(f);
    case BITNET_OP_KV_WRITE:
      return fits_write(f);
    case BITNET_OP_ATTN_PAGED:
      return fits_attention(f);
    case BITNET_OP_ADD:
    case BITNET_OP_MUL:
      return in_f32(f, 1, f->rows, f->k) && maps(f, f->k);
    case BITNET_OP_SCALE:
      return isfinite(f->o->floats[0]) && maps(f, f->k);
    case BITNET_OP_COLUMNS:
      return fits_columns(f);
    case BITNET_OP_SHORT_CONV:
      return fits_conv(f);
    case BITNET_OP_DELTA_GATES:
      return fits_gates(f);
    case BITNET_OP_DELTA_RULE:
      return fits_delta(f);
    case BITNET_OP_GATHER_ROWS:
      return in_f32(f, 0, BITNET_DIM_TOKENS, f->k) && out_f32(f, 0, BITNET_DIM_OUTPUTS, f->k);
    default:
      return maps(f, f->k); /* RELU2, SILU, GELU, SIGMOID */
  }
}

/* Which facts an op reads, as ops.h lists them. */
static uint32_t reads_of(uint32_t op) {
  const uint32_t of_sequences = 1u << BITNET_PORT_POSITIONS | 1u << BITNET_PORT_SEQUENCES;
  switch (op) {
    case BITNET_OP_EMBED_GATHER:
      return 1u << BITNET_PORT_TOKENS;
    case BITNET_OP_ROPE:
      return 1u << BITNET_PORT_POSITIONS;
    case BITNET_OP_KV_WRITE:
      return 1u << BITNET_PORT_SLOTS;
    case BITNET_OP_ATTN_PAGED:
      return of_sequences | 1u << BITNET_PORT_BLOCK_TABLES;
    case BITNET_OP_GATHER_ROWS:
      return 1u << BITNET_PORT_OUTPUT_ROWS;
    case BITNET_OP_SHORT_CONV:
    case BITNET_OP_DELTA_RULE:
      return of_sequences | 1u << BITNET_PORT_STATES;
    default:
      return 0;
  }
}

/* Of an attribute that is a choice, a value that ops.h does not have yet. */
static bool is_unknown_choice(const bitnet_op* o) {
  switch (o->op) {
    case BITNET_OP_ROPE:
      return o->ints[3] != BITNET_ROPE_NEOX && o->ints[3] != BITNET_ROPE_INTERLEAVED;
    case BITNET_OP_HADAMARD:
      return o->ints[1] != BITNET_HADAMARD_FACTORS_FIRST &&
             o->ints[1] != BITNET_HADAMARD_FACTORS_LAST;
    case BITNET_OP_DELTA_RULE:
      return o->ints[5] != BITNET_DELTA_BLOCKS && o->ints[5] != BITNET_DELTA_TURNS;
    default:
      return false;
  }
}

bitnet_status check_op(struct bitnet_program* p, struct op* op, const char* where,
                       bitnet_error* err) {
  struct fit f = {.p = p, .o = &op->is, .weight = op->weight};
  if (is_unknown_choice(&op->is))
    return fail(err, BITNET_UNSUPPORTED, where, "an attribute of op %u is not known", op->is.op);
  if (op->is.inputs[0] != BITNET_NONE) {
    f.rows = p->values[op->is.inputs[0]].rows;
    f.k = p->values[op->is.inputs[0]].width;
  }
  if (!fits(&f))
    return fail(err, BITNET_INVALID_ARGUMENT, where, "the shapes or attributes of op %u do not fit",
                op->is.op);
  p->reads |= reads_of(op->is.op);
  op->state_end = f.state_end;
  return BITNET_OK;
}
