// Built with -msse4.1: kernels only, nothing that runs before dispatch, no shared inline functions.
#include <smmintrin.h>

#include "linear_i8.hpp"

namespace bitnet::cpu {
namespace {

using wide = int32_t __attribute__((vector_size(16)));
using words = __m128i;
constexpr uint64_t lanes = 4;
constexpr uint64_t rows_at_once = 1, outputs_at_once = 4;

inline words codes(const uint8_t* w) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(w));
  return _mm_sub_epi16(_mm_cvtepu8_epi16(bytes), _mm_set1_epi16(128));
}

inline wide madd(words q, const int16_t* x) {
  return reinterpret_cast<wide>(
      _mm_madd_epi16(q, _mm_loadu_si128(reinterpret_cast<const __m128i*>(x))));
}

#include "linear_i8_words.inl"

}  // namespace

void linear_i8_sse41(const i8_tile& a) {
  multiply_tile<false>(a);
}

void linear_i4_sse41(const i8_tile& a) {
  multiply_tile<true>(a);
}

}  // namespace bitnet::cpu
