// Built with AVX2 flags: kernels only, nothing that runs before dispatch, no shared inline
// functions.
#include <immintrin.h>

#include "linear_i8.hpp"

namespace bitnet::cpu {
namespace {

using wide = int32_t __attribute__((vector_size(32)));
using words = __m256i;
constexpr uint64_t lanes = 8;
constexpr uint64_t rows_at_once = 2, outputs_at_once = 4;

inline words codes(const uint8_t* w) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(w));
  return _mm256_sub_epi16(_mm256_cvtepu8_epi16(bytes), _mm256_set1_epi16(128));
}

inline wide madd(words q, const int16_t* x) {
  return reinterpret_cast<wide>(
      _mm256_madd_epi16(q, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x))));
}

#include "linear_i8_words.inl"

}  // namespace

void linear_i8_avx2(const i8_tile& a) {
  multiply_tile<false>(a);
}

void linear_i4_avx2(const i8_tile& a) {
  multiply_tile<true>(a);
}

}  // namespace bitnet::cpu
