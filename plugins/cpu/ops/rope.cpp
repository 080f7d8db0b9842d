#include <algorithm>
#include <cmath>

#include "ops.hpp"

namespace bitnet::cpu {
namespace {

// Angles in double: beyond a few thousand tokens f32 is too coarse for position * frequency.
double frequency(const sdk::call& a, uint64_t pair) {
  const double f =
      static_cast<double>(a.floats[1]) *
      std::pow(static_cast<double>(a.floats[0]),
               -2.0 * static_cast<double>(pair) / static_cast<double>(a.ints[rope_ints::dims]));
  return a.w ? f / static_cast<double>(a.w->f32()[pair]) : f;
}

void compute_rotation(double angle, float& cosine, float& sine) {
  cosine = static_cast<float>(std::cos(angle));
  sine = static_cast<float>(std::sin(angle));
}

// For heads with more pairs than rope_angles holds. No known model has them.
void rope_pair_by_pair(const float* x, int32_t position, const sdk::call& a, float* y) {
  const auto heads = static_cast<uint64_t>(a.ints[rope_ints::heads]),
             head_dim = static_cast<uint64_t>(a.ints[rope_ints::head_dim]);
  const uint64_t pairs = static_cast<uint64_t>(a.ints[rope_ints::dims]) / 2;
  const bool neox = a.ints[rope_ints::pairing] == BITNET_ROPE_NEOX;
  std::copy(x, x + heads * head_dim, y);
  for (uint64_t i = 0; i < pairs; ++i) {
    float c = 0, s = 0;
    compute_rotation(position * frequency(a, i), c, s);
    const uint64_t first = neox ? i : 2 * i, second = neox ? i + pairs : 2 * i + 1;
    for (uint64_t at = 0; at < heads * head_dim; at += head_dim) {
      y[at + first] = x[at + first] * c - x[at + second] * s;
      y[at + second] = x[at + first] * s + x[at + second] * c;
    }
  }
}

}  // namespace

void rope_row(const isa_form& isa, const float* x, uint64_t token, int32_t position,
              const sdk::call& a, rope_angles& known, float* y) {
  const uint64_t pairs = static_cast<uint64_t>(a.ints[rope_ints::dims]) / 2;
  if (pairs > rope_angles::max_pairs) {
    rope_pair_by_pair(x, position, a, y);
    return;
  }
  const bool same = pairs != 0 && known.pairs == pairs && known.theta == a.floats[0] &&
                    known.scale == a.floats[1] && known.divisors == a.w;
  if (!same) {
    for (uint64_t i = 0; i < pairs; ++i) known.frequencies[i] = frequency(a, i);
    if (++known.frequencies_known == 0) {  // wrapped around: no cached rotation may seem current
      for (rope_angles::rotation& t : known.of_token) t.of = 0;
      known.frequencies_known = 1;
    }
  }
  known.pairs = pairs;
  known.theta = a.floats[0];
  known.scale = a.floats[1];
  known.divisors = a.w;
  rope_angles::rotation& now = known.of_token[token % rope_angles::tokens];
  if (now.of != known.frequencies_known || now.position != position)
    for (uint64_t i = 0; i < pairs; ++i)
      compute_rotation(position * known.frequencies[i], now.cosines[i], now.sines[i]);
  now.of = known.frequencies_known;
  now.position = position;
  isa.rows.rotate(x,
                  {.cosines = now.cosines,
                   .sines = now.sines,
                   .pairs = pairs,
                   .heads = static_cast<uint64_t>(a.ints[rope_ints::heads]),
                   .head_dim = static_cast<uint64_t>(a.ints[rope_ints::head_dim]),
                   .neox = a.ints[rope_ints::pairing] == BITNET_ROPE_NEOX},
                  y);
}

}  // namespace bitnet::cpu
