// Built with -msse4.1: kernels only, nothing that runs before dispatch, no shared inline functions.
#include <smmintrin.h>

#include <cstring>

#include "linear_grouped.hpp"

namespace bitnet::cpu {
namespace {

#include "registers_sse41.inl"

constexpr bool in_place = false;  // codes times 64 would overflow int16
constexpr bool in_words = true;
// int16 holds 32 times two products of 3 * 128, less the sum of 128 activations.
using part = __m128i;

inline part dot(part sums, vec codes, vec q) {
  return _mm_add_epi16(sums, _mm_maddubs_epi16(codes, q));
}

// As dot. Inline assembly, because g++ 12 copies the sums with _mm_add_epi16.
[[gnu::always_inline]] inline void add(part& sums, vec codes, vec q) {
  asm("paddw %1, %0" : "+x"(sums) : "x"(_mm_maddubs_epi16(codes, q)));
}

inline auto widen(part sums) {
  using wide = int32_t __attribute__((vector_size(16)));
  return reinterpret_cast<wide>(_mm_madd_epi16(sums, _mm_set1_epi16(1)));
}

inline part begin_with(const int32_t* start) {
  return broadcast(reinterpret_cast<const int8_t*>(start));
}

#include "linear_grouped_vector.inl"

}  // namespace

void linear_grouped_sse41(const grouped_tile& a) {
  multiply_tile<2, 4, 8>(a);
}

}  // namespace bitnet::cpu
