// Built with AVX-512 F, BW and VL: kernels only, nothing that runs before dispatch, no shared
// inline functions.
#include <immintrin.h>

#include <cstring>

#include "linear_ternary.hpp"

namespace bitnet::cpu {
namespace {

using vec = __m512i;
using part = __m512i;  // int16
using wide = int32_t __attribute__((vector_size(64)));
constexpr uint64_t width = 64;

// A lane adds 4 planes of two products per unit: 10 * 4 * 2 * 3 * 128 = 30720 < 32768.
constexpr uint64_t run = 10;

inline vec load(const void* p) {
  return _mm512_loadu_si512(p);
}

inline __m256i half(const int8_t* q) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(q));
}

inline vec activations(const int8_t* q) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(half(q)), half(q + 128), 1);
}

inline part dot(part sums, vec codes, vec q) {
  return _mm512_add_epi16(sums, _mm512_maddubs_epi16(codes, q));
}

inline wide widen(part sums) {
  return reinterpret_cast<wide>(_mm512_madd_epi16(sums, _mm512_set1_epi16(1)));
}

inline int32_t total(wide sums) {
  return _mm512_reduce_add_epi32(reinterpret_cast<__m512i>(sums));
}

#include "linear_ternary_vector.inl"

}  // namespace

void linear_ternary_avx512(const ternary_tile& a) {
  multiply_tile<2, 4>(a);
}

}  // namespace bitnet::cpu
