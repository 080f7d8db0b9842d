/* SPDX-License-Identifier: Apache-2.0 */
/* One op, RELU2, and the two that bring numbers to it and take them away. */
#include <string.h>

#include "plain.h"

static void relu2(const struct work* w) {
  const float* in = w->in[0];
  float* out = w->out[0];
  for (uint64_t i = 0; i < w->rows * w->k; ++i) {
    const float positive = in[i] > 0 ? in[i] : 0;
    out[i] = positive * positive;
  }
}

static void embed_gather(const struct work* w) {
  for (uint64_t t = 0; t < w->rows; ++t)
    memcpy((float*)w->out[0] + t * w->m,
           w->weight->data + (uint64_t)w->facts->tokens[t] * w->weight->row_bytes,
           w->m * sizeof(float));
}

static void gather_rows(const struct work* w) {
  for (uint64_t o = 0; o < w->rows; ++o)
    memcpy((float*)w->out[0] + o * w->m,
           (const float*)w->in[0] + (uint64_t)w->facts->output_rows[o] * w->k,
           w->m * sizeof(float));
}

enum { same = BITNET_EXACT_BATCH | BITNET_EXACT_RUN };

const struct kernel all_kernels[] = {
    {BITNET_OP_RELU2, BITNET_FORMAT_NONE, same, "relu2.c", relu2},
    {BITNET_OP_EMBED_GATHER, BITNET_FORMAT_F32, same, "embed_gather.f32.c", embed_gather},
    {BITNET_OP_GATHER_ROWS, BITNET_FORMAT_NONE, same, "gather_rows.c", gather_rows},
};
const uint32_t n_kernels = sizeof all_kernels / sizeof all_kernels[0];
const uint32_t attention_flags = 0;
