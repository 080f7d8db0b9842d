// Built with AVX-512 flags: kernels only, nothing that runs before dispatch, no shared inline
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

// Sixteen elements from element i of a row.
template <uint32_t Format>
__m512 decode(const uint8_t* row, uint64_t i) {
  if constexpr (Format == BITNET_FORMAT_Q8_0) {
    const uint8_t* block = row + i / 32 * 34;
    uint16_t d;
    std::memcpy(&d, block, sizeof d);
    const __m512 scale = _mm512_broadcastss_ps(_mm_cvtph_ps(_mm_cvtsi32_si128(d)));
    const __m128i q = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 2 + i % 32));
    return _mm512_mul_ps(scale, _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(q)));
  } else {
    const uint8_t* at = row + i * element_bytes(Format);
    if constexpr (Format == BITNET_FORMAT_F32) return _mm512_loadu_ps(at);
    const __m256i h = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
    if constexpr (Format == BITNET_FORMAT_F16) return _mm512_cvtph_ps(h);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
  }
}

float total(__m512 p) {
  const __m256 upper = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(p), 1));
  const __m256 by8 = _mm256_add_ps(_mm512_castps512_ps256(p), upper);
  const __m128 by4 = _mm_add_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  const __m128 by2 = _mm_add_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_add_ss(by2, _mm_shuffle_ps(by2, by2, 1)));
}

template <uint32_t Format, int Rows>
void dot(const dense_tile& a, uint64_t r, uint64_t t) {
  __m512 sums[Rows];
  for (int i = 0; i < Rows; ++i) sums[i] = _mm512_setzero_ps();
  const float* x = a.x + t * a.x_stride;
  const uint8_t* w = a.w + r * a.w_stride;
  const uint64_t whole = a.k / 16 * 16;
  for (uint64_t k = 0; k < whole; k += 16) {
    const __m512 xs = _mm512_loadu_ps(x + k);
    for (int i = 0; i < Rows; ++i)
      sums[i] = _mm512_add_ps(
          sums[i], _mm512_mul_ps(decode<Format>(w + static_cast<uint64_t>(i) * a.w_stride, k), xs));
  }
  if constexpr (Format != BITNET_FORMAT_Q8_0) {  // whose rows are whole blocks of 32
    if (whole != a.k) {  // zeros after the end: a partial is never -0, so adding +0 changes nothing
      float x_rest[16] = {};
      std::memcpy(x_rest, x + whole, (a.k - whole) * sizeof(float));
      for (int i = 0; i < Rows; ++i) {
        alignas(64) uint8_t rest[64] = {};
        std::memcpy(rest, w + static_cast<uint64_t>(i) * a.w_stride + whole * element_bytes(Format),
                    (a.k - whole) * element_bytes(Format));
        sums[i] =
            _mm512_add_ps(sums[i], _mm512_mul_ps(decode<Format>(rest, 0), _mm512_loadu_ps(x_rest)));
      }
    }
  }
  for (int i = 0; i < Rows; ++i)
    a.y[t * a.y_stride + r + static_cast<uint64_t>(i)] = total(sums[i]);
}

template <uint32_t Format>
void run(const dense_tile& a) {
  uint64_t r = 0;
  for (; r + 4 <= a.rows; r += 4)
    for (uint64_t t = 0; t < a.tokens; ++t) dot<Format, 4>(a, r, t);
  for (; r < a.rows; ++r)
    for (uint64_t t = 0; t < a.tokens; ++t) dot<Format, 1>(a, r, t);
}

// Vectors * 16 columns from column d, all rows.
template <uint32_t Format, int Vectors>
void columns(const weighted_rows& a, const uint8_t* v, uint64_t d, float* y) {
  __m512 sums[Vectors];
  for (uint64_t i = 0; i < Vectors; ++i) sums[i] = _mm512_loadu_ps(y + 16 * i);
  for (uint64_t j = 0; j < a.rows; ++j) {
    const __m512 p = _mm512_set1_ps(a.p[j]);
    for (uint64_t i = 0; i < Vectors; ++i)
      sums[i] =
          _mm512_add_ps(sums[i], _mm512_mul_ps(p, decode<Format>(v + j * a.v_stride, d + 16 * i)));
  }
  for (uint64_t i = 0; i < Vectors; ++i) _mm512_storeu_ps(y + 16 * i, sums[i]);
}

template <uint32_t Format>
void sum(const weighted_rows& a) {
  uint64_t d = 0;
  for (; d + 64 <= a.width; d += 64) columns<Format, 4>(a, a.v, d, a.y + d);
  for (; d + 16 <= a.width; d += 16) columns<Format, 1>(a, a.v, d, a.y + d);
  if (d == a.width) return;
  const uint64_t n = a.width - d;
  float y[16] = {};
  std::memcpy(y, a.y + d, n * sizeof(float));
  for (uint64_t j = 0; j < a.rows; ++j) {
    alignas(64) uint8_t rest[64] = {};
    std::memcpy(rest, a.v + j * a.v_stride + d * element_bytes(Format), n * element_bytes(Format));
    weighted_rows one = a;
    one.p = a.p + j;
    one.rows = 1;
    columns<Format, 1>(one, rest, 0, y);
  }
  std::memcpy(a.y + d, y, n * sizeof(float));
}

}  // namespace

void linear_dense_avx512(const dense_tile& a) {
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

void weighted_sum_avx512(const weighted_rows& a) {
  a.format == BITNET_FORMAT_F32 ? sum<BITNET_FORMAT_F32>(a) : sum<BITNET_FORMAT_F16>(a);
}

}  // namespace bitnet::cpu
