// Built with -mavx2: kernels only, nothing that runs before dispatch, no shared inline functions.
#include <immintrin.h>

#include <cstring>

#include "linear_grouped.hpp"

namespace bitnet::cpu {
namespace {

#include "registers_avx2.inl"

constexpr bool in_place = false;  // a product of codes times 64 has no room in int16
// int16: 8 times two products of 3 * 128 at most.
using part = __m256i;

inline part dot(part sums, vec codes, vec q) {
  return _mm256_add_epi16(sums, _mm256_maddubs_epi16(codes, q));
}

inline auto widen(part sums) {
  using wide = int32_t __attribute__((vector_size(32)));
  return reinterpret_cast<wide>(_mm256_madd_epi16(sums, _mm256_set1_epi16(1)));
}

#include "linear_grouped_vector.inl"

}  // namespace

void linear_grouped_avx2(const grouped_tile& a) {
  all<2, 4>(a);
}

}  // namespace bitnet::cpu
