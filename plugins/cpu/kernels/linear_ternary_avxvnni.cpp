// Built with -mavx2 -mavxvnni: kernels only, nothing that runs before dispatch, no shared inline
// functions.
#include <immintrin.h>

#include <cstring>

#include "linear_ternary.hpp"

namespace bitnet::cpu {
namespace {

using vec = __m256i;
using part = __m256i;  // int32
using wide = int32_t __attribute__((vector_size(32)));
constexpr uint64_t width = 32;
constexpr uint64_t run = UINT64_MAX;

inline vec load(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

inline vec activations(const int8_t* q) {
  return load(q);
}

inline part dot(part sums, vec codes, vec q) {
  return _mm256_dpbusd_avx_epi32(sums, codes, q);
}

inline wide widen(part sums) {
  return reinterpret_cast<wide>(sums);
}

inline int32_t total(wide sums) {
  const auto v = reinterpret_cast<__m256i>(sums);
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
  return _mm_cvtsi128_si32(s);
}

#include "linear_ternary_vector.inl"

}  // namespace

void linear_ternary_avxvnni(const ternary_tile& a) {
  multiply_tile<2, 4>(a);
}

}  // namespace bitnet::cpu
