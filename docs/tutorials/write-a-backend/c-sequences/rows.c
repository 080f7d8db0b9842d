/* SPDX-License-Identifier: Apache-2.0 */
/* What works on one row of numbers at a time, as bitnet/abi/ops.h defines it. */
#include <math.h>
#include <string.h>

#include "kernels.h"

void embed_gather(const struct work* w) {
  const struct tensor* from = w->weight;
  for (uint64_t t = 0; t < w->rows; ++t) {
    const uint64_t token = (uint64_t)w->facts->tokens[t];
    float* out = (float*)w->out[0] + t * w->m;
    decode(from->format, from->data + token * from->row_bytes, 0, from->k, out);
    if (from->format != BITNET_FORMAT_TERNARY2) continue;
    for (uint64_t i = 0; i < from->k; ++i)
      out[i] *=
          from->scales[from->scale_group == 0 ? 0 : (token * from->k + i) / from->scale_group];
  }
}

/* Each `width` elements by themselves. */
static void norm_each(const struct work* w, uint64_t width) {
  const float* factors = (const float*)(const void*)w->weight->data;
  for (uint64_t at = 0; at < w->rows * w->k; at += width) {
    const float* x = (const float*)w->in[0] + at;
    float* out = (float*)w->out[0] + at;
    double squares = 0;
    for (uint64_t i = 0; i < width; ++i) squares += (double)x[i] * (double)x[i];
    const float mean = (float)(squares / (double)width);
    const float factor = 1 / sqrtf(mean + w->op->floats[0]);
    for (uint64_t i = 0; i < width; ++i) out[i] = x[i] * factor * factors[i];
  }
}

void rms_norm(const struct work* w) {
  norm_each(w, w->k);
}

void rms_norm_heads(const struct work* w) {
  norm_each(w, w->weight->k);
}

static float largest_of(const float* x, uint64_t n, float least) {
  for (uint64_t i = 0; i < n; ++i)
    if (fabsf(x[i]) > least) least = fabsf(x[i]);
  return least;
}

/* Half to even; NaN becomes `least`, since to convert it would be undefined. */
static void quantise(const float* x, uint64_t n, float scale, float least, signed char* q) {
  for (uint64_t i = 0; i < n; ++i) {
    const float code = nearbyintf(x[i] * scale);
    q[i] = (signed char)(code > least ? (code < 127 ? code : 127) : least);
  }
}

void act_quant_i8(const struct work* w) {
  for (uint64_t r = 0; r < w->rows; ++r) {
    const float* x = (const float*)w->in[0] + r * w->k;
    const float scale = 127 / largest_of(x, w->k, 1e-5f);
    ((float*)w->out[1])[r] = scale;
    quantise(x, w->k, scale, -128, (signed char*)w->out[0] + r * w->k);
  }
}

void act_quant_i8_grouped(const struct work* w) {
  const uint64_t group = (uint64_t)w->op->ints[0];
  for (uint64_t g = 0; g < w->rows * w->k / group; ++g) {
    const float* x = (const float*)w->in[0] + g * group;
    const float largest = largest_of(x, group, 1e-30f);
    ((float*)w->out[1])[g] = largest / 127;
    quantise(x, group, 127 / largest, -127, (signed char*)w->out[0] + g * group);
  }
}

static void multiply_rows(const struct work* w, const float* factors) {
  float* out = w->out[0];
  for (uint64_t i = 0; i < w->rows * w->k; ++i) out[i] *= factors[i % w->k];
}

void hadamard(const struct work* w) {
  const float* factors = w->weight ? (const float*)(const void*)w->weight->data : NULL;
  const bool first = w->op->ints[1] == BITNET_HADAMARD_FACTORS_FIRST;
  const uint64_t block = (uint64_t)w->op->ints[0];
  const float scale = (float)(1 / sqrt((double)block));
  float* out = w->out[0];
  memcpy(out, w->in[0], w->rows * w->k * sizeof *out);
  if (factors && first) multiply_rows(w, factors);
  for (uint64_t d = 1; d < block; d *= 2)
    for (uint64_t i = 0; i < w->rows * w->k; ++i) {
      if ((i % block & d) != 0) continue;
      const float a = out[i], b = out[i + d];
      out[i] = a + b;
      out[i + d] = a - b;
    }
  for (uint64_t i = 0; i < w->rows * w->k; ++i) out[i] *= scale;
  if (factors && !first) multiply_rows(w, factors);
}

/* ---- element by element ---- */

#define FOR_EACH(name, formula)                     \
  void name(const struct work* w) {                 \
    const float *in = w->in[0], *other = w->in[1];  \
    float* out = w->out[0];                         \
    (void)other;                                    \
    for (uint64_t i = 0; i < w->rows * w->k; ++i) { \
      const float x = in[i];                        \
      out[i] = formula;                             \
    }                                               \
  }

FOR_EACH(add, x + other[i])
FOR_EACH(mul, x* other[i])
FOR_EACH(relu2, x > 0 ? x * x : 0)
FOR_EACH(silu, x / (1 + expf(-x)))
FOR_EACH(gelu, x / (1 + expf(-x * (1.5957691216f + 0.0713548163f * (x * x)))))
FOR_EACH(sigmoid, 1 / (1 + expf(-x)))
FOR_EACH(scale, x * w->op->floats[0])

/* ---- moved ---- */

void columns(const struct work* w) {
  const int32_t* is = w->op->ints;
  const uint64_t length = (uint64_t)is[0];
  float* out = w->out[0];
  for (uint64_t r = 0; r < w->rows; ++r)
    for (int64_t a = 0; a < is[4]; ++a)
      for (int64_t b = 0; b < is[2]; ++b, out += length)
        memcpy(out, (const float*)w->in[0] + r * w->k + is[1] + a * is[5] + b * is[3],
               length * sizeof *out);
}

void gather_rows(const struct work* w) {
  for (uint64_t o = 0; o < w->rows; ++o)
    memcpy((float*)w->out[0] + o * w->m,
           (const float*)w->in[0] + (uint64_t)w->facts->output_rows[o] * w->k,
           w->m * sizeof(float));
}
