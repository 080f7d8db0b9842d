// Built with +dotprod: kernels only, nothing that runs before dispatch, no shared inline functions.
#include <arm_neon.h>

#include <cstring>

#include "linear_grouped.hpp"

namespace bitnet::cpu {
namespace {

constexpr bool in_place = false;  // its dot product takes codes as signed bytes

#include "products_neon_dotprod.inl"

constexpr bool in_words = false;

inline part begin_with(const int32_t* start) {
  return vdupq_n_s32(*start);
}

inline void add(part& sums, vec codes, vec q) {
  sums = dot(sums, codes, q);
}

#include "linear_grouped_vector.inl"

}  // namespace

void linear_grouped_neon_dotprod(const grouped_tile& a) {
  multiply_tile<4, 8, 16>(a);
}

}  // namespace bitnet::cpu
