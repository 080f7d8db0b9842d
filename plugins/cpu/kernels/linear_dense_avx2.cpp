// Built with -mavx2 -mf16c: kernels only, nothing that runs before dispatch, no shared inline
// functions. Multiply and add stay apart, as the order in linear_dense.hpp says.
#include <immintrin.h>

#include <cstring>

#include "bitnet/abi/tensor.h"
#include "linear_dense.hpp"

namespace bitnet::cpu {
namespace {

#include "format_sizes.inl"

// The scale at the beginning of a block.
__m256 scale_of(const uint8_t* block) {
  uint16_t d;
  std::memcpy(&d, block, sizeof d);
  return _mm256_broadcastss_ps(_mm_cvtph_ps(_mm_cvtsi32_si128(d)));
}

// The int8 codes in bytes with two Q4_0 codes each, from element i of a block.
__m128i four_bits(__m128i pairs, uint64_t i) {
  const __m128i shift = _mm_cvtsi32_si128(i % 32 < 16 ? 0 : 4);
  const __m128i codes = _mm_and_si128(_mm_srl_epi16(pairs, shift), _mm_set1_epi8(15));
  return _mm_sub_epi8(codes, _mm_set1_epi8(8));
}

// Eight elements from element i of a row.
template <uint32_t Format>
__m256 decode(const uint8_t* row, uint64_t i) {
  if constexpr (Format == BITNET_FORMAT_Q8_0) {
    const uint8_t* block = row + i / 32 * 34;
    const __m128i q = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(block + 2 + i % 32));
    return _mm256_mul_ps(scale_of(block), _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q)));
  } else if constexpr (Format == BITNET_FORMAT_Q4_0) {
    const uint8_t* block = row + i / 32 * 18;
    const __m128i pairs = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(block + 2 + i % 16));
    return _mm256_mul_ps(scale_of(block),
                         _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(four_bits(pairs, i))));
  } else {
    const uint8_t* at = row + i * element_bytes(Format);
    if constexpr (Format == BITNET_FORMAT_F32)
      return _mm256_loadu_ps(reinterpret_cast<const float*>(at));
    const __m128i h = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    if constexpr (Format == BITNET_FORMAT_F16) return _mm256_cvtph_ps(h);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
  }
}

// Sixteen elements from element i of a row, a multiple of 16: a block's scale is widened once.
template <uint32_t Format>
void decode_pair(const uint8_t* row, uint64_t i, __m256& first, __m256& second) {
  if constexpr (in_blocks(Format)) {
    constexpr bool int8 = Format == BITNET_FORMAT_Q8_0;
    const uint8_t* block = row + i / 32 * (int8 ? 34 : 18);
    const __m256 scale = scale_of(block);
    const auto* at = reinterpret_cast<const __m128i*>(block + 2 + i % (int8 ? 32 : 16));
    const __m128i q = int8 ? _mm_loadu_si128(at) : four_bits(_mm_loadu_si128(at), i);
    first = _mm256_mul_ps(scale, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q)));
    second = _mm256_mul_ps(scale, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(q, 8))));
  } else {
    first = decode<Format>(row, i);
    second = decode<Format>(row, i + 8);
  }
}

// The partials p[j] of one row are low[j] and, for j >= 8, high[j - 8].
float total(__m256 low, __m256 high) {
  const __m256 by8 = _mm256_add_ps(low, high);
  const __m128 by4 = _mm_add_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  const __m128 by2 = _mm_add_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_add_ss(by2, _mm_shuffle_ps(by2, by2, 1)));
}

#include "prefetch_rows.inl"

void load_pair(const float* x, __m256 (&out)[2]) {
  out[0] = _mm256_loadu_ps(x);
  out[1] = _mm256_loadu_ps(x + 8);
}

// A tile of Rows rows by Tokens tokens: each weight is decoded once for all the tokens.
template <uint32_t Format, int Rows, int Tokens>
void dot(const dense_tile& a, uint64_t r, uint64_t t) {
  __m256 low[Rows][Tokens], high[Rows][Tokens];
  const auto kept = [&](int i, int j) {
    return a.partials +
           ((t + static_cast<uint64_t>(j)) * a.rows + r + static_cast<uint64_t>(i)) * 16;
  };
  for (int i = 0; i < Rows; ++i)
    for (int j = 0; j < Tokens; ++j) {
      low[i][j] = a.partials ? _mm256_loadu_ps(kept(i, j)) : _mm256_setzero_ps();
      high[i][j] = a.partials ? _mm256_loadu_ps(kept(i, j) + 8) : _mm256_setzero_ps();
    }
  const float* x = a.x + t * a.x_stride;
  const uint8_t* w = a.w + r * a.w_stride;
  const auto add = [&](const uint8_t* row, uint64_t k, int i, const __m256(&xs)[Tokens][2]) {
    __m256 first, second;
    decode_pair<Format>(row, k, first, second);
    for (int j = 0; j < Tokens; ++j) {
      low[i][j] = _mm256_add_ps(low[i][j], _mm256_mul_ps(first, xs[j][0]));
      high[i][j] = _mm256_add_ps(high[i][j], _mm256_mul_ps(second, xs[j][1]));
    }
  };
  const uint64_t whole = a.k / 16 * 16;
  const bool later = a.later != nullptr && t == 0;
  for (uint64_t k = 0; k < whole; k += 16) {
    if (later) prefetch_later(a.later, a.later_row_bytes, r, Rows, k / 16, a.k / 16);
    __m256 xs[Tokens][2];
    for (int j = 0; j < Tokens; ++j)
      load_pair(x + static_cast<uint64_t>(j) * a.x_stride + k, xs[j]);
    for (int i = 0; i < Rows; ++i) add(w + static_cast<uint64_t>(i) * a.w_stride, k, i, xs);
  }
  if constexpr (!in_blocks(Format)) {
    if (whole != a.k) {  // zeros after the end: a partial is never -0, so adding +0 changes nothing
      __m256 xs[Tokens][2];
      for (int j = 0; j < Tokens; ++j) {
        float x_rest[16] = {};
        std::memcpy(x_rest, x + static_cast<uint64_t>(j) * a.x_stride + whole,
                    (a.k - whole) * sizeof(float));
        load_pair(x_rest, xs[j]);
      }
      for (int i = 0; i < Rows; ++i) {
        alignas(32) uint8_t rest[64] = {};
        std::memcpy(rest, w + static_cast<uint64_t>(i) * a.w_stride + whole * element_bytes(Format),
                    (a.k - whole) * element_bytes(Format));
        add(rest, 0, i, xs);
      }
    }
  }
  for (int i = 0; i < Rows; ++i)
    for (int j = 0; j < Tokens; ++j) {
      if (a.partials != nullptr) {
        _mm256_storeu_ps(kept(i, j), low[i][j]);
        _mm256_storeu_ps(kept(i, j) + 8, high[i][j]);
      } else {
        a.y[(t + static_cast<uint64_t>(j)) * a.y_stride + r + static_cast<uint64_t>(i)] =
            total(low[i][j], high[i][j]);
      }
    }
}

template <uint32_t Format>
void run(const dense_tile& a) {
  uint64_t r = 0;
  for (; r + 4 <= a.rows; r += 4) {
    if (a.next != nullptr) prefetch(a.w, a.next, a.rows, r + rows_ahead, 4, a.w_stride);
    uint64_t t = 0;
    for (; t + 2 <= a.tokens; t += 2) {  // 16 registers: 2 rows by 2 tokens
      dot<Format, 2, 2>(a, r, t);
      dot<Format, 2, 2>(a, r + 2, t);
    }
    for (; t < a.tokens; ++t) dot<Format, 4, 1>(a, r, t);
  }
  for (; r < a.rows; ++r)
    for (uint64_t t = 0; t < a.tokens; ++t) dot<Format, 1, 1>(a, r, t);
}

// Vectors * 8 columns from column d of Heads heads from h, all rows.
template <uint32_t Format, int Vectors, int Heads>
void columns(const weighted_rows& a, uint64_t d, uint64_t h) {
  __m256 sums[Heads][Vectors];
  float* y = a.y + h * a.y_stride + d;
  const float* p = a.p + h * a.p_stride;
  for (uint64_t g = 0; g < Heads; ++g)
    for (uint64_t i = 0; i < Vectors; ++i) sums[g][i] = _mm256_loadu_ps(y + g * a.y_stride + 8 * i);
  for (uint64_t j = 0; j < a.rows; ++j) {
    if (d == 0 && a.next != nullptr) prefetch(a.v, a.next, a.rows, j + rows_ahead, 1, a.v_stride);
    __m256 v[Vectors];
    const uint8_t* row = a.v + j * a.v_stride;
    if constexpr (Vectors == 2)
      decode_pair<Format>(row, d, v[0], v[1]);
    else
      for (uint64_t i = 0; i < Vectors; ++i) v[i] = decode<Format>(row, d + 8 * i);
    for (uint64_t g = 0; g < Heads; ++g) {
      const __m256 weight = _mm256_set1_ps(p[g * a.p_stride + j]);
      for (uint64_t i = 0; i < Vectors; ++i)
        sums[g][i] = _mm256_add_ps(sums[g][i], _mm256_mul_ps(weight, v[i]));
    }
  }
  for (uint64_t g = 0; g < Heads; ++g)
    for (uint64_t i = 0; i < Vectors; ++i) _mm256_storeu_ps(y + g * a.y_stride + 8 * i, sums[g][i]);
}

// The columns from d on, fewer than 8, of one head.
template <uint32_t Format>
void last_columns(const weighted_rows& a, uint64_t d, uint64_t h) {
  const uint64_t n = a.width - d;
  float y[8] = {};
  std::memcpy(y, a.y + h * a.y_stride + d, n * sizeof(float));
  for (uint64_t j = 0; j < a.rows; ++j) {
    alignas(32) uint8_t rest[32] = {};
    std::memcpy(rest, a.v + j * a.v_stride + d * element_bytes(Format), n * element_bytes(Format));
    columns<Format, 1, 1>({a.format, rest, 0, a.p + h * a.p_stride + j, 0, y, 0, 1, 8, 1, rest}, 0,
                          0);
  }
  std::memcpy(a.y + h * a.y_stride + d, y, n * sizeof(float));
}

template <uint32_t Format, int Heads>
void sum(const weighted_rows& a, uint64_t h) {
  uint64_t d = 0;
  for (; d + 16 <= a.width; d += 16) columns<Format, 2, Heads>(a, d, h);
  for (; d + 8 <= a.width; d += 8) columns<Format, 1, Heads>(a, d, h);
  if constexpr (!in_blocks(Format))
    if (d != a.width)
      for (uint64_t g = 0; g < Heads; ++g) last_columns<Format>(a, d, h + g);
}

template <uint32_t Format>
void sum(const weighted_rows& a) {
  uint64_t h = 0;
  for (; h + 4 <= a.heads; h += 4) sum<Format, 4>(a, h);
  for (; h < a.heads; ++h) sum<Format, 1>(a, h);
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
    case BITNET_FORMAT_Q8_0:
      return run<BITNET_FORMAT_Q8_0>(a);
    case BITNET_FORMAT_Q4_0:
      return run<BITNET_FORMAT_Q4_0>(a);
    default:
      return;
  }
}

void weighted_sum_avx2(const weighted_rows& a) {
  switch (a.format) {
#define BITNET_SUM_OF(name, NAME) \
  case kv_format::name:           \
    return sum<BITNET_FORMAT_##NAME>(a);
    BITNET_CPU_KV_FORMATS(BITNET_SUM_OF)
#undef BITNET_SUM_OF
    case kv_format::none:
      return;
  }
}

}  // namespace bitnet::cpu
