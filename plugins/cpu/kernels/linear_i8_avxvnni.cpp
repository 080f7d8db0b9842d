// Built with -mavx2 -mavxvnni: kernels only, nothing that runs before dispatch, no shared inline
// functions.
#include <immintrin.h>

#include "linear_i8.hpp"

namespace bitnet::cpu {
namespace {

using vec = __m256i;
constexpr int64_t offset = 128;
constexpr uint64_t width = 32;
constexpr uint64_t rows_at_once = 2, outputs_at_once = 2;

inline vec load(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

inline vec codes(const uint8_t* w) {
  return load(w);
}

inline vec dot(vec sums, vec c, vec x) {
  return _mm256_dpbusd_avx_epi32(sums, c, x);
}

inline int32_t total(vec sums) {
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
  return _mm_cvtsi128_si32(s);
}

#include "linear_i8_bytes.inl"

}  // namespace

void linear_i8_avxvnni(const i8_tile& a) {
  multiply_tile<false>(a);
}

void linear_i4_avxvnni(const i8_tile& a) {
  multiply_tile<true>(a);
}

}  // namespace bitnet::cpu
