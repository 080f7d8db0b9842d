/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a matrix with rows of activations. A row of the matrix is decoded once for all rows
 * of activations. */
#include "kernels.h"

static void codes_of_row(const struct tensor* w, uint64_t m, signed char* out) {
  for (uint64_t k = 0; k < w->k; ++k)
    out[k] = (signed char)ternary_at(w->data + m * w->row_bytes, k);
}

static int32_t dot(const signed char* a, const signed char* b, uint64_t n) {
  int32_t sum = 0; /* exact, whatever the order */
  for (uint64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void linear_ternary(const struct work* w) {
  const struct tensor* by = w->weight;
  const float* s = w->in[1];
  signed char* t = (signed char*)w->scratch;
  for (uint64_t m = 0; m < by->m; ++m) {
    codes_of_row(by, m, t);
    for (uint64_t r = 0; r < w->rows; ++r) {
      const signed char* q = (const signed char*)w->in[0] + r * by->k;
      float* y = (float*)w->out[0] + r * by->m + m;
      if (by->scale_group == 0) {
        *y = (float)dot(t, q, by->k) / s[r] * by->scales[0];
        continue;
      }
      float sum = 0;
      for (uint64_t k = 0; k < by->k; k += by->scale_group)
        sum += (float)dot(t + k, q + k, by->scale_group) *
               by->scales[(m * by->k + k) / by->scale_group];
      *y = sum / s[r];
    }
  }
}

/* The shorter groups, of activations or of weights, lie in the longer ones. */
void linear_ternary_grouped(const struct work* w) {
  const struct tensor* by = w->weight;
  const uint64_t of_d = by->k / w->k1, of_scale = by->scale_group == 0 ? by->k : by->scale_group;
  const bool inner_d = of_d <= of_scale;
  const uint64_t inner = inner_d ? of_d : of_scale, outer = inner_d ? of_scale : of_d;
  signed char* t = (signed char*)w->scratch;
  for (uint64_t m = 0; m < by->m; ++m) {
    const float* scales = by->scales + (by->scale_group == 0 ? 0 : m * by->k / of_scale);
    codes_of_row(by, m, t);
    for (uint64_t r = 0; r < w->rows; ++r) {
      const signed char* q = (const signed char*)w->in[0] + r * by->k;
      const float* d = (const float*)w->in[1] + r * w->k1;
      const float *p = inner_d ? d : scales, *of_outer = inner_d ? scales : d;
      float sum = 0;
      for (uint64_t o = 0; o < by->k; o += outer) {
        float part = 0;
        for (uint64_t k = o; k < o + outer; k += inner)
          part += (float)dot(t + k, q + k, inner) * p[k / inner];
        sum += part * of_outer[o / outer];
      }
      ((float*)w->out[0])[r * by->m + m] = sum;
    }
  }
}

void linear_dense(const struct work* w) {
  enum { lanes = 8 }; /* sums beside each other: less is lost, and a compiler can use vectors */
  const struct tensor* by = w->weight;
  float* row = w->scratch;
  for (uint64_t m = 0; m < by->m; ++m) {
    decode(by->format, by->data + m * by->row_bytes, 0, by->k, row);
    for (uint64_t r = 0; r < w->rows; ++r) {
      const float* x = (const float*)w->in[0] + r * by->k;
      float sums[lanes] = {0}, sum = 0;
      uint64_t k = 0;
      for (; k + lanes <= by->k; k += lanes)
        for (uint64_t lane = 0; lane < lanes; ++lane) sums[lane] += row[k + lane] * x[k + lane];
      for (; k < by->k; ++k) sum += row[k] * x[k];
      for (uint64_t lane = 0; lane < lanes; ++lane) sum += sums[lane];
      ((float*)w->out[0])[r * by->m + m] = sum;
    }
  }
}
