// SHORT_CONV and DELTA_RULE: ops on the state of a sequence.

#include <algorithm>
#include <cmath>

#include "bitnet/sdk/reference/primitives.hpp"
#include "bitnet/sdk/reference/recurrent.hpp"
#include "ops/ops.hpp"

namespace bitnet::cpu {
namespace {

namespace reference = sdk::reference;
using heads_of = reference::kernels::delta_heads;

// 1 / the length of a head: 16 sums in double, added in halves as in rows.hpp.
float inverse_length(const float* x, uint64_t n, float eps) noexcept {
  double sums[16] = {};
  uint64_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (uint64_t j = 0; j < 16; ++j) sums[j] += double{x[i + j]} * double{x[i + j]};
  for (; i < n; ++i) sums[i % 16] += double{x[i]} * double{x[i]};
  for (int half = 8; half != 0; half /= 2)
    for (int j = 0; j < half; ++j) sums[j] += sums[j + half];
  return 1.0f / std::sqrt(static_cast<float>(sums[0]) + eps);
}

// y = the sum of four rows, each times its column of w (k, 4): the shape of all known models.
void four_rows(const float* const* rows, const float* w, uint64_t first, uint64_t last,
               float* y) noexcept {
  const float *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
  for (uint64_t i = first; i < last; ++i) {
    const float* f = w + 4 * i;
    y[i] = ((f[0] * a[i] + f[1] * b[i]) + f[2] * c[i]) + f[3] * d[i];
  }
}

}  // namespace

void short_conv(const sdk::call& c, uint64_t first, uint64_t last) {
  const uint64_t n = c.w->k;
  const float* x = c.input<float>(0);
  auto* y = c.output<float>(0);
  for (uint64_t t = 0; t < c.rows;) {
    const auto [begin, end, state, fresh] = c.step->stretch_from(t, c.ints[0]);
    if (fresh)
      for (uint64_t i = 0; i < n - 1; ++i)
        std::fill(state + i * c.k + first, state + i * c.k + last, 0.0f);
    for (; t < end; ++t) {
      if (n != 4) {
        reference::short_conv(x + begin * c.k, state, c.w->f32(), t - begin, c.k, n, first, last,
                              y + begin * c.k);
        continue;
      }
      const float* rows[4];
      for (uint64_t i = 0; i < 4; ++i)
        rows[i] = t + i >= begin + 3 ? x + (t + i - 3) * c.k : state + (t - begin + i) * c.k;
      four_rows(rows, c.w->f32(), first, last, y + t * c.k);
    }
    reference::short_conv_keep(x + begin * c.k, end - begin, c.k, n, first, last, false, state);
  }
}

void delta_rule(const isa_form& isa, const sdk::call& c, uint64_t first, uint64_t last) {
  const heads_of at(c);
  for (uint64_t t = 0; t < c.rows;) {
    const auto [begin, end, part, fresh] = c.step->stretch_from(t, c.ints[0]);
    for (uint64_t h = first; h < last; ++h) {
      float* state = part + h * at.d_k * at.d_v;
      if (fresh) std::fill_n(state, at.d_k * at.d_v, 0.0f);
      for (t = begin; t < end; ++t) {
        const float* x = c.input<float>(0) + t * c.k;
        const float* gates = c.input<float>(1) + t * c.k1;
        const float *q = x + at.query(h), *k = x + at.key(h);
        const delta_token token{.q = q,
                                .k = k,
                                .v = x + at.value(h),
                                .q_factor = inverse_length(q, at.d_k, c.floats[1]) * c.floats[0],
                                .k_factor = inverse_length(k, at.d_k, c.floats[1]),
                                .decay = gates[h],
                                .beta = gates[at.n_v + h]};
        isa.rows.delta_rule(token, at.d_k, at.d_v, state,
                            c.output<float>(0) + t * c.m + h * at.d_v);
      }
    }
    t = end;
  }
}

}  // namespace bitnet::cpu
