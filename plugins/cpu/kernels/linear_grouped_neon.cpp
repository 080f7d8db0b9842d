// linear_grouped.hpp with NEON, without the product instructions of later processors.
#include <arm_neon.h>

#include <cstring>

#include "linear_grouped.hpp"

namespace bitnet::cpu {
namespace {

constexpr bool in_place = false;  // codes times 64 would overflow int16

#include "products_neon.inl"

constexpr bool in_words = true;

inline part begin_with(const int32_t* start) {
  const int16x8_t both = vreinterpretq_s16_s64(vdupq_n_s64(*start));  // one lane of each half
  return {both, both};
}

inline void add(part& sums, vec codes, vec q) {
  sums = dot(sums, codes, q);
}

#include "linear_grouped_vector.inl"

}  // namespace

void linear_grouped_neon(const grouped_tile& a) {
  multiply_tile<4, 4, 16>(a);
}

}  // namespace bitnet::cpu
