// Built with AVX-512 F, BW and VL: kernels only, nothing that runs before dispatch, no shared
// inline functions.
#include <immintrin.h>

#include "linear_i8.hpp"

namespace bitnet::cpu {
namespace {

using wide = int32_t __attribute__((vector_size(64)));
using words = __m512i;
constexpr uint64_t lanes = 16;
constexpr uint64_t rows_at_once = 2, outputs_at_once = 4;

inline words codes(const uint8_t* w) {
  const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w));
  return _mm512_sub_epi16(_mm512_cvtepu8_epi16(bytes), _mm512_set1_epi16(128));
}

inline wide madd(words q, const int16_t* x) {
  return reinterpret_cast<wide>(_mm512_madd_epi16(q, _mm512_loadu_si512(x)));
}

#include "linear_i8_words.inl"

}  // namespace

void linear_i8_avx512(const i8_tile& a) {
  multiply_tile<false>(a);
}

void linear_i4_avx512(const i8_tile& a) {
  multiply_tile<true>(a);
}

}  // namespace bitnet::cpu
