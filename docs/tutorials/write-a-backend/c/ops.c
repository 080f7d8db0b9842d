/* SPDX-License-Identifier: Apache-2.0 */
/* What shapes the ops of kernels.c take. Another op is another case here. */
#include "plain.h"

static bool is_f32(const struct bitnet_program* p, uint32_t value, int64_t rows, uint64_t width) {
  const struct value* v = &p->values[value];
  return v->dtype == BITNET_DTYPE_F32 && v->rows == rows && v->width == width;
}

bitnet_status check_op(struct bitnet_program* p, struct op* op, const char* where,
                       bitnet_error* err) {
  const bitnet_op* o = &op->is;
  bool fits = false;
  if (o->op == BITNET_OP_EMBED_GATHER) {
    p->reads |= 1u << BITNET_PORT_TOKENS;
    if (op->weight->m < p->vocabulary) p->vocabulary = op->weight->m;
    fits = is_f32(p, o->outputs[0], BITNET_DIM_TOKENS, op->weight->k);
  } else {
    const struct value* in = &p->values[o->inputs[0]];
    const bool gathers = o->op == BITNET_OP_GATHER_ROWS;
    if (gathers) p->reads |= 1u << BITNET_PORT_OUTPUT_ROWS;
    fits = in->dtype == BITNET_DTYPE_F32 && (!gathers || in->rows == BITNET_DIM_TOKENS) &&
           is_f32(p, o->outputs[0], gathers ? BITNET_DIM_OUTPUTS : in->rows, in->width);
  }
  if (fits) return BITNET_OK;
  return fail(err, BITNET_INVALID_ARGUMENT, where, "the shapes of op %u do not fit", o->op);
}
