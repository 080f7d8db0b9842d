/* SPDX-License-Identifier: Apache-2.0 */
/* One op, RELU2, and the two that bring numbers to it and take them away. */
#include <string.h>

#include "plain.h"

static void relu2(const struct work* w) {
  for (uint64_t i = 0; i < w->rows * w->width; ++i) {
    const float positive = w->in[i] > 0 ? w->in[i] : 0;
    w->out[i] = positive * positive;
  }
}

static void copy_rows(const struct work* w, const float* from) {
  for (uint64_t r = 0; r < w->rows; ++r)
    memcpy(w->out + r * w->width, from + (uint64_t)w->index[r] * w->width,
           w->width * sizeof(float));
}

static void embed_gather(const struct work* w) {
  copy_rows(w, w->weight);
}

static void gather_rows(const struct work* w) {
  copy_rows(w, w->in);
}

const struct kernel all_kernels[n_kernels] = {
    {BITNET_OP_RELU2, BITNET_FORMAT_NONE, "relu2.c", relu2},
    {BITNET_OP_EMBED_GATHER, BITNET_FORMAT_F32, "embed_gather.f32.c", embed_gather},
    {BITNET_OP_GATHER_ROWS, BITNET_FORMAT_NONE, "gather_rows.c", gather_rows},
};
