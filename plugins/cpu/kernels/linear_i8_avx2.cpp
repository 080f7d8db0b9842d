// Built with AVX2 flags: kernels only, nothing that runs before dispatch, no shared inline
// functions.
#include <immintrin.h>

#include "linear_i8.hpp"

namespace bitnet::cpu {
namespace {

template <int Rows>
void tile(const i8_tile& a, uint64_t r) {
  __m256i sums[Rows];
  for (int i = 0; i < Rows; ++i) sums[i] = _mm256_setzero_si256();
  const uint8_t* w = a.w + r * a.w_stride;
  const __m256i offset = _mm256_set1_epi16(128);
  for (uint64_t k = 0; k < a.k; k += 16) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a.x + k));
    for (int i = 0; i < Rows; ++i) {
      const __m128i codes = _mm_loadu_si128(
          reinterpret_cast<const __m128i*>(w + static_cast<uint64_t>(i) * a.w_stride + k));
      const __m256i q = _mm256_sub_epi16(_mm256_cvtepu8_epi16(codes), offset);
      sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(q, x));
    }
  }
  for (int i = 0; i < Rows; ++i) {
    alignas(32) int32_t p[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(p), sums[i]);
    int64_t sum = 0;
    for (const int32_t v : p) sum += v;
    a.sums[r + static_cast<uint64_t>(i)] = sum;
  }
}

}  // namespace

void linear_i8_avx2(const i8_tile& a) {
  uint64_t r = 0;
  for (; r + 4 <= a.rows; r += 4) tile<4>(a, r);
  for (; r < a.rows; ++r) tile<1>(a, r);
}

}  // namespace bitnet::cpu
