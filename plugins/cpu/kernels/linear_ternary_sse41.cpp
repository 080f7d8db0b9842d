// Built with -msse4.1: kernels only, nothing that runs before dispatch, no shared inline functions.
#include <smmintrin.h>

#include <cstring>

#include "linear_ternary.hpp"

namespace bitnet::cpu {
namespace {

using vec = __m128i;
using part = __m128i;  // int16
using wide = int32_t __attribute__((vector_size(16)));
constexpr uint64_t width = 16;

// A lane: 2 halves, 4 planes, two products per unit: 5 * 2 * 4 * 2 * 3 * 128 = 30720 < 32768.
constexpr uint64_t run = 5;

inline vec load(const void* p) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
}

inline vec activations(const int8_t* q) {
  return load(q);
}

inline part dot(part sums, vec codes, vec q) {
  return _mm_add_epi16(sums, _mm_maddubs_epi16(codes, q));
}

inline wide widen(part sums) {
  return reinterpret_cast<wide>(_mm_madd_epi16(sums, _mm_set1_epi16(1)));
}

inline int32_t total(wide sums) {
  auto s = reinterpret_cast<__m128i>(sums);
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
  return _mm_cvtsi128_si32(s);
}

#include "linear_ternary_vector.inl"

}  // namespace

void linear_ternary_sse41(const ternary_tile& a) {
  multiply_tile<2, 4>(a);
}

}  // namespace bitnet::cpu
