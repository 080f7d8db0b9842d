// Built with -mavx2 -mf16c: kernels only, nothing that runs before dispatch, no shared inline
// functions. Multiply and add stay apart, as the order in linear_dense.hpp says.
#include <immintrin.h>

#include <cstring>

#include "bitnet/abi/tensor.h"
#include "linear_dense.hpp"

namespace bitnet::cpu {
namespace {

constexpr uint64_t element_bytes(uint32_t format) {
  return format == BITNET_FORMAT_F32 ? 4 : 2;
}

// Eight elements from element i of a row.
template <uint32_t Format>
__m256 decode(const uint8_t* row, uint64_t i) {
  if constexpr (Format == BITNET_FORMAT_Q8_0) {
    const uint8_t* block = row + i / 32 * 34;
    uint16_t d;
    std::memcpy(&d, block, sizeof d);
    const __m256 scale = _mm256_broadcastss_ps(_mm_cvtph_ps(_mm_cvtsi32_si128(d)));
    const __m128i q = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(block + 2 + i % 32));
    return _mm256_mul_ps(scale, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q)));
  } else {
    const uint8_t* at = row + i * element_bytes(Format);
    if constexpr (Format == BITNET_FORMAT_F32)
      return _mm256_loadu_ps(reinterpret_cast<const float*>(at));
    const __m128i h = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    if constexpr (Format == BITNET_FORMAT_F16) return _mm256_cvtph_ps(h);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
  }
}

// The partials p[j] of one row are low[j] and, for j >= 8, high[j - 8].
float total(__m256 low, __m256 high) {
  const __m256 by8 = _mm256_add_ps(low, high);
  const __m128 by4 = _mm_add_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  const __m128 by2 = _mm_add_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_add_ss(by2, _mm_shuffle_ps(by2, by2, 1)));
}

template <uint32_t Format, int Rows>
void dot(const dense_tile& a, uint64_t r, uint64_t t) {
  __m256 low[Rows], high[Rows];
  for (int i = 0; i < Rows; ++i) low[i] = high[i] = _mm256_setzero_ps();
  const float* x = a.x + t * a.x_stride;
  const uint8_t* w = a.w + r * a.w_stride;
  const uint64_t whole = a.k / 16 * 16;
  for (uint64_t k = 0; k < whole; k += 16) {
    const __m256 x_low = _mm256_loadu_ps(x + k), x_high = _mm256_loadu_ps(x + k + 8);
    for (int i = 0; i < Rows; ++i) {
      const uint8_t* row = w + static_cast<uint64_t>(i) * a.w_stride;
      low[i] = _mm256_add_ps(low[i], _mm256_mul_ps(decode<Format>(row, k), x_low));
      high[i] = _mm256_add_ps(high[i], _mm256_mul_ps(decode<Format>(row, k + 8), x_high));
    }
  }
  if constexpr (Format != BITNET_FORMAT_Q8_0) {  // whose rows are whole blocks of 32
    if (whole != a.k) {  // zeros after the end: a partial is never -0, so adding +0 changes nothing
      float x_rest[16] = {};
      std::memcpy(x_rest, x + whole, (a.k - whole) * sizeof(float));
      for (int i = 0; i < Rows; ++i) {
        alignas(32) uint8_t rest[64] = {};
        std::memcpy(rest, w + static_cast<uint64_t>(i) * a.w_stride + whole * element_bytes(Format),
                    (a.k - whole) * element_bytes(Format));
        low[i] =
            _mm256_add_ps(low[i], _mm256_mul_ps(decode<Format>(rest, 0), _mm256_loadu_ps(x_rest)));
        high[i] = _mm256_add_ps(
            high[i], _mm256_mul_ps(decode<Format>(rest, 8), _mm256_loadu_ps(x_rest + 8)));
      }
    }
  }
  for (int i = 0; i < Rows; ++i)
    a.y[t * a.y_stride + r + static_cast<uint64_t>(i)] = total(low[i], high[i]);
}

template <uint32_t Format>
void run(const dense_tile& a) {
  uint64_t r = 0;
  for (; r + 4 <= a.rows; r += 4)
    for (uint64_t t = 0; t < a.tokens; ++t) dot<Format, 4>(a, r, t);
  for (; r < a.rows; ++r)
    for (uint64_t t = 0; t < a.tokens; ++t) dot<Format, 1>(a, r, t);
}

// Vectors * 8 columns from column d, all rows.
template <uint32_t Format, int Vectors>
void columns(const weighted_rows& a, const uint8_t* v, uint64_t d, float* y) {
  __m256 sums[Vectors];
  for (uint64_t i = 0; i < Vectors; ++i) sums[i] = _mm256_loadu_ps(y + 8 * i);
  for (uint64_t j = 0; j < a.rows; ++j) {
    const __m256 p = _mm256_set1_ps(a.p[j]);
    for (uint64_t i = 0; i < Vectors; ++i)
      sums[i] =
          _mm256_add_ps(sums[i], _mm256_mul_ps(p, decode<Format>(v + j * a.v_stride, d + 8 * i)));
  }
  for (uint64_t i = 0; i < Vectors; ++i) _mm256_storeu_ps(y + 8 * i, sums[i]);
}

template <uint32_t Format>
void sum(const weighted_rows& a) {
  uint64_t d = 0;
  for (; d + 32 <= a.width; d += 32) columns<Format, 4>(a, a.v, d, a.y + d);
  for (; d + 8 <= a.width; d += 8) columns<Format, 1>(a, a.v, d, a.y + d);
  if (d == a.width) return;
  const uint64_t n = a.width - d;
  float y[8] = {};
  std::memcpy(y, a.y + d, n * sizeof(float));
  for (uint64_t j = 0; j < a.rows; ++j) {
    alignas(32) uint8_t rest[32] = {};
    std::memcpy(rest, a.v + j * a.v_stride + d * element_bytes(Format), n * element_bytes(Format));
    weighted_rows one = a;
    one.p = a.p + j;
    one.rows = 1;
    columns<Format, 1>(one, rest, 0, y);
  }
  std::memcpy(a.y + d, y, n * sizeof(float));
}

}  // namespace

void linear_dense_avx2(const dense_tile& a) {
  switch (a.format) {
    case BITNET_FORMAT_F32:
      return run<BITNET_FORMAT_F32>(a);
    case BITNET_FORMAT_F16:
      return run<BITNET_FORMAT_F16>(a);
    case BITNET_FORMAT_BF16:
      return run<BITNET_FORMAT_BF16>(a);
    default:
      return run<BITNET_FORMAT_Q8_0>(a);
  }
}

void weighted_sum_avx2(const weighted_rows& a) {
  a.format == BITNET_FORMAT_F32 ? sum<BITNET_FORMAT_F32>(a) : sum<BITNET_FORMAT_F16>(a);
}

}  // namespace bitnet::cpu
