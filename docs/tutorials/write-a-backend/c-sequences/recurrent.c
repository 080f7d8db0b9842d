/* SPDX-License-Identifier: Apache-2.0 */
/* What sequences carry from step to step. The tokens of one stand together: a stretch. */
#include <math.h>
#include <string.h>

#include "kernels.h"

struct stretch {
  uint64_t first, end; /* tokens */
  float* state;        /* the op's part of that of their sequence */
};

/* The stretch that begins at a token. A sequence that begins has a state of zeros. */
static struct stretch stretch_at(const struct work* w, uint64_t first, uint64_t elements) {
  const struct facts* f = w->facts;
  const int32_t sequence = f->sequences[first];
  struct stretch s = {.first = first, .end = first + 1};
  while (s.end < f->n_tokens && f->sequences[s.end] == sequence) ++s.end;
  s.state =
      f->pool->states + (uint64_t)f->states[sequence] * f->pool->is.state_elements + w->op->ints[0];
  if (f->positions[first] == 0) memset(s.state, 0, elements * sizeof *s.state);
  return s;
}

void short_conv(const struct work* w) {
  const uint64_t k = w->k, n = w->weight->k;
  const float* factors = (const float*)(const void*)w->weight->data; /* (k, n) */
  for (uint64_t t = 0; t < w->rows;) {
    const struct stretch s = stretch_at(w, t, (n - 1) * k);
    for (; t < s.end; ++t) {
      const float* x = (const float*)w->in[0] + t * k;
      float* out = (float*)w->out[0] + t * k;
      for (uint64_t c = 0; c < k; ++c) {
        float sum = 0;
        for (uint64_t i = 0; i + 1 < n; ++i) sum += factors[c * n + i] * s.state[i * k + c];
        out[c] = sum + factors[c * n + n - 1] * x[c];
      }
      /* The rows before the next token: the oldest leaves, this one comes. */
      memmove(s.state, s.state + k, (n - 2) * k * sizeof *x);
      memcpy(s.state + (n - 2) * k, x, k * sizeof *x);
    }
  }
}

void delta_gates(const struct work* w) {
  const uint64_t heads = w->k;
  const float* factors = (const float*)(const void*)w->weight->data;
  for (uint64_t t = 0; t < w->rows; ++t)
    for (uint64_t h = 0; h < heads; ++h) {
      const float z = ((const float*)w->in[0])[t * heads + h] + factors[heads + h];
      const float softplus = (z > 0 ? z : 0) + log1pf(expf(-fabsf(z)));
      float* out = (float*)w->out[0] + t * 2 * heads;
      out[h] = expf(factors[h] * softplus);
      out[heads + h] = 1 / (1 + expf(-((const float*)w->in[1])[t * heads + h]));
    }
}

static float inverse_length(const float* x, uint64_t n, float eps) {
  double squares = 0;
  for (uint64_t i = 0; i < n; ++i) squares += (double)x[i] * (double)x[i];
  return 1 / sqrtf((float)squares + eps);
}

/* One value head of one token, with its S (d_k, d_v). */
static void delta_head(const struct work* w, uint64_t t, uint64_t h, float* S) {
  const int32_t* is = w->op->ints;
  const uint64_t n_k = (uint64_t)is[1], n_v = (uint64_t)is[2], d_k = (uint64_t)is[3];
  const uint64_t d_v = (uint64_t)is[4],
                 of_k = is[5] == BITNET_DELTA_BLOCKS ? h / (n_v / n_k) : h % n_k;
  const float* x = (const float*)w->in[0] + t * w->k;
  const float *q = x + of_k * d_k, *k = x + (n_k + of_k) * d_k, *v = x + 2 * n_k * d_k + h * d_v;
  const float decay = ((const float*)w->in[1])[t * w->k1 + h];
  const float beta = ((const float*)w->in[1])[t * w->k1 + n_v + h];
  const float of_q = inverse_length(q, d_k, w->op->floats[1]);
  const float of_key = inverse_length(k, d_k, w->op->floats[1]);
  float* y = (float*)w->out[0] + t * w->m + h * d_v;
  for (uint64_t j = 0; j < d_v; ++j) {
    float sum = 0;
    for (uint64_t i = 0; i < d_k; ++i) {
      S[i * d_v + j] *= decay;
      sum += k[i] * of_key * S[i * d_v + j];
    }
    const float u = beta * (v[j] - sum);
    y[j] = 0;
    for (uint64_t i = 0; i < d_k; ++i) {
      S[i * d_v + j] += k[i] * of_key * u;
      y[j] += q[i] * of_q * w->op->floats[0] * S[i * d_v + j];
    }
  }
}

void delta_rule(const struct work* w) {
  const uint64_t n_v = (uint64_t)w->op->ints[2];
  const uint64_t of_head = (uint64_t)w->op->ints[3] * (uint64_t)w->op->ints[4];
  for (uint64_t t = 0; t < w->rows;) {
    const struct stretch s = stretch_at(w, t, n_v * of_head);
    for (; t < s.end; ++t)
      for (uint64_t h = 0; h < n_v; ++h) delta_head(w, t, h, s.state + h * of_head);
  }
}
