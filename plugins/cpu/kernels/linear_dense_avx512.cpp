// Built with AVX-512 flags: kernels only, nothing that runs before dispatch, no shared inline
// functions. Multiply and add stay apart, as the order in linear_dense.hpp says.
#include <immintrin.h>

#include <cstring>

#include "bitnet/abi/tensor.h"
#include "linear_dense.hpp"

namespace bitnet::cpu {
namespace {

#include "format_sizes.inl"

// The scale at the beginning of a block.
__m512 scale_of(const uint8_t* block) {
  uint16_t d;
  std::memcpy(&d, block, sizeof d);
  return _mm512_broadcastss_ps(_mm_cvtph_ps(_mm_cvtsi32_si128(d)));
}

// The sixteen values of a Q4_0 block, in the order of their codes. Decoding looks them up by the
// low four bits of a lane.
__m512 values_of(const uint8_t* block) {
  const __m512 steps = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
  return _mm512_mul_ps(scale_of(block), steps);
}

// Sixteen bytes, each in a lane.
__m512i lanes_of(const uint8_t* bytes) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)));
}

// Sixteen elements from element i of a row.
template <uint32_t Format>
__m512 decode(const uint8_t* row, uint64_t i) {
  if constexpr (Format == BITNET_FORMAT_Q4_0) {
    const uint8_t* block = row + i / 32 * 18;
    const __m128i shift = _mm_cvtsi32_si128(i % 32 < 16 ? 0 : 4);
    return _mm512_permutexvar_ps(_mm512_srl_epi32(lanes_of(block + 2), shift), values_of(block));
  } else if constexpr (Format == BITNET_FORMAT_Q8_0) {
    const uint8_t* block = row + i / 32 * 34;
    const __m512 scale = scale_of(block);
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

// Thirty-two elements from element i of a row, a multiple of 32: a block's scale is widened once.
template <uint32_t Format>
void decode_pair(const uint8_t* row, uint64_t i, __m512& first, __m512& second) {
  if constexpr (Format == BITNET_FORMAT_Q4_0) {
    const uint8_t* block = row + i / 32 * 18;
    const __m512 values = values_of(block);
    const __m512i pairs = lanes_of(block + 2);
    first = _mm512_permutexvar_ps(pairs, values);
    second = _mm512_permutexvar_ps(_mm512_srli_epi32(pairs, 4), values);
  } else if constexpr (Format == BITNET_FORMAT_Q8_0) {
    const uint8_t* block = row + i / 32 * 34;
    const __m512 scale = scale_of(block);
    const auto widened = [&](const uint8_t* q) {
      const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(q));
      return _mm512_mul_ps(scale, _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes)));
    };
    first = widened(block + 2);
    second = widened(block + 18);
  } else {
    first = decode<Format>(row, i);
    second = decode<Format>(row, i + 16);
  }
}

float total(__m512 p) {
  const __m256 upper = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(p), 1));
  const __m256 by8 = _mm256_add_ps(_mm512_castps512_ps256(p), upper);
  const __m128 by4 = _mm_add_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  const __m128 by2 = _mm_add_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_add_ss(by2, _mm_shuffle_ps(by2, by2, 1)));
}

#include "prefetch_rows.inl"

// total() of 16 vectors at once: vector 4 i + j becomes element i of group j.
__m512 totals(const __m512 (&v)[16]) {
  __m512 p[8];
  for (uint64_t i = 0; i < 8; ++i)
    p[i] = _mm512_add_ps(_mm512_shuffle_f32x4(v[2 * i], v[2 * i + 1], 0x44),
                         _mm512_shuffle_f32x4(v[2 * i], v[2 * i + 1], 0xee));
  for (uint64_t i = 0; i < 4; ++i)
    p[i] = _mm512_add_ps(_mm512_shuffle_f32x4(p[2 * i], p[2 * i + 1], 0x88),
                         _mm512_shuffle_f32x4(p[2 * i], p[2 * i + 1], 0xdd));
  for (uint64_t i = 0; i < 2; ++i)
    p[i] = _mm512_add_ps(_mm512_shuffle_ps(p[2 * i], p[2 * i + 1], 0x44),
                         _mm512_shuffle_ps(p[2 * i], p[2 * i + 1], 0xee));
  return _mm512_add_ps(_mm512_shuffle_ps(p[0], p[1], 0x88), _mm512_shuffle_ps(p[0], p[1], 0xdd));
}

// Writes a tile's totals to y, the place of its first row and first token.
template <int Rows, int Tokens>
void store(float* y, uint64_t y_stride, const __m512 (&sums)[Rows][Tokens]) {
  if constexpr (Rows == 4 && Tokens == 4) {
    __m512 all[16];
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) all[4 * i + j] = sums[i][j];
    const __m512 done = totals(all);
    _mm_storeu_ps(y, _mm512_castps512_ps128(done));
    _mm_storeu_ps(y + y_stride, _mm512_extractf32x4_ps(done, 1));
    _mm_storeu_ps(y + 2 * y_stride, _mm512_extractf32x4_ps(done, 2));
    _mm_storeu_ps(y + 3 * y_stride, _mm512_extractf32x4_ps(done, 3));
  } else {
    for (int i = 0; i < Rows; ++i)
      for (int j = 0; j < Tokens; ++j)
        y[static_cast<uint64_t>(j) * y_stride + static_cast<uint64_t>(i)] = total(sums[i][j]);
  }
}

// Sixteen elements of a row, from element k on, times those of each token.
template <uint32_t Format, int Tokens>
[[gnu::always_inline]] inline void add_products(__m512 (&sums)[Tokens], const uint8_t* row,
                                                uint64_t k, const __m512 (&xs)[Tokens]) {
  const __m512 v = decode<Format>(row, k);
  for (int j = 0; j < Tokens; ++j) sums[j] = _mm512_add_ps(sums[j], _mm512_mul_ps(v, xs[j]));
}

// Adds the products of blocks of 32, from element k of all the rows.
template <uint32_t Format, int Rows, int Tokens>
[[gnu::always_inline]] inline void add_block(__m512 (&sums)[Rows][Tokens], const dense_tile& a,
                                             const uint8_t* w, const float* x, uint64_t k) {
  __m512 xs[Tokens][2];
  for (int j = 0; j < Tokens; ++j) {
    const float* at = x + static_cast<uint64_t>(j) * a.x_stride + k;
    xs[j][0] = _mm512_loadu_ps(at);
    xs[j][1] = _mm512_loadu_ps(at + 16);
  }
  for (int i = 0; i < Rows; ++i) {
    __m512 first, second;
    decode_pair<Format>(w + static_cast<uint64_t>(i) * a.w_stride, k, first, second);
    for (int j = 0; j < Tokens; ++j) {
      sums[i][j] = _mm512_add_ps(sums[i][j], _mm512_mul_ps(first, xs[j][0]));
      sums[i][j] = _mm512_add_ps(sums[i][j], _mm512_mul_ps(second, xs[j][1]));
    }
  }
}

// The elements from k on, fewer than 16, with zeros after the end: a partial is never -0, so adding
// +0 changes nothing.
template <uint32_t Format, int Rows, int Tokens>
[[gnu::always_inline]] inline void add_rest(__m512 (&sums)[Rows][Tokens], const dense_tile& a,
                                            const uint8_t* w, const float* x, uint64_t k) {
  const uint64_t n = a.k - k;
  __m512 xs[Tokens];
  for (int j = 0; j < Tokens; ++j) {
    float x_rest[16] = {};
    std::memcpy(x_rest, x + static_cast<uint64_t>(j) * a.x_stride + k, n * sizeof(float));
    xs[j] = _mm512_loadu_ps(x_rest);
  }
  for (int i = 0; i < Rows; ++i) {
    alignas(64) uint8_t rest[64] = {};
    std::memcpy(rest, w + static_cast<uint64_t>(i) * a.w_stride + k * element_bytes(Format),
                n * element_bytes(Format));
    add_products<Format>(sums[i], rest, 0, xs);
  }
}

// A tile of Rows rows by Tokens tokens: each weight is decoded once for all the tokens.
template <uint32_t Format, int Rows, int Tokens>
void dot(const dense_tile& a, uint64_t r, uint64_t t) {
  __m512 sums[Rows][Tokens];
  const auto kept = [&](int i, int j) {
    return a.partials +
           ((t + static_cast<uint64_t>(j)) * a.rows + r + static_cast<uint64_t>(i)) * 16;
  };
  for (int i = 0; i < Rows; ++i)
    for (int j = 0; j < Tokens; ++j)
      sums[i][j] = a.partials ? _mm512_loadu_ps(kept(i, j)) : _mm512_setzero_ps();
  const float* x = a.x + t * a.x_stride;
  const uint8_t* w = a.w + r * a.w_stride;
  uint64_t k = 0;
  const uint64_t whole = a.k / 16 * 16;
  const bool later = a.later != nullptr && t == 0;
  if constexpr (in_blocks(Format))
    for (; k < whole; k += 32) {
      if (later) prefetch_later(a.later, a.later_row_bytes, r, Rows, k / 32, a.k / 32);
      add_block<Format>(sums, a, w, x, k);
    }
  for (; k < whole; k += 16) {
    if (later) prefetch_later(a.later, a.later_row_bytes, r, Rows, k / 16, a.k / 16);
    __m512 xs[Tokens];
    for (int j = 0; j < Tokens; ++j)
      xs[j] = _mm512_loadu_ps(x + static_cast<uint64_t>(j) * a.x_stride + k);
    for (int i = 0; i < Rows; ++i)
      add_products<Format>(sums[i], w + static_cast<uint64_t>(i) * a.w_stride, k, xs);
  }
  if constexpr (!in_blocks(Format))
    if (whole != a.k) add_rest<Format>(sums, a, w, x, whole);
  if (a.partials != nullptr) {
    for (int i = 0; i < Rows; ++i)
      for (int j = 0; j < Tokens; ++j) _mm512_storeu_ps(kept(i, j), sums[i][j]);
    return;
  }
  store(a.y + t * a.y_stride + r, a.y_stride, sums);
}

template <uint32_t Format, int Rows>
void row_tile(const dense_tile& a, uint64_t r) {
  uint64_t t = 0;
  for (; t + 4 <= a.tokens; t += 4) dot<Format, Rows, 4>(a, r, t);
  for (; t + 2 <= a.tokens; t += 2) dot<Format, Rows, 2>(a, r, t);
  for (; t < a.tokens; ++t) dot<Format, Rows, 1>(a, r, t);
}

template <uint32_t Format>
void run(const dense_tile& a) {
  uint64_t r = 0;
  for (; r + 4 <= a.rows; r += 4) {
    if (a.next != nullptr) prefetch(a.w, a.next, a.rows, r + rows_ahead, 4, a.w_stride);
    row_tile<Format, 4>(a, r);
  }
  for (; r < a.rows; ++r) row_tile<Format, 1>(a, r);
}

// Vectors * 16 columns from column d of Heads heads from h, all rows.
template <uint32_t Format, int Vectors, int Heads>
void columns(const weighted_rows& a, uint64_t d, uint64_t h) {
  __m512 sums[Heads][Vectors];
  float* y = a.y + h * a.y_stride + d;
  const float* p = a.p + h * a.p_stride;
  for (uint64_t g = 0; g < Heads; ++g)
    for (uint64_t i = 0; i < Vectors; ++i)
      sums[g][i] = _mm512_loadu_ps(y + g * a.y_stride + 16 * i);
  for (uint64_t j = 0; j < a.rows; ++j) {
    if (d == 0 && a.next != nullptr) prefetch(a.v, a.next, a.rows, j + rows_ahead, 1, a.v_stride);
    __m512 v[Vectors];
    const uint8_t* row = a.v + j * a.v_stride;
    if constexpr (Vectors == 4)
      for (uint64_t i = 0; i < Vectors; i += 2)
        decode_pair<Format>(row, d + 16 * i, v[i], v[i + 1]);
    else
      for (uint64_t i = 0; i < Vectors; ++i) v[i] = decode<Format>(row, d + 16 * i);
    for (uint64_t g = 0; g < Heads; ++g) {
      const __m512 weight = _mm512_set1_ps(p[g * a.p_stride + j]);
      for (uint64_t i = 0; i < Vectors; ++i)
        sums[g][i] = _mm512_add_ps(sums[g][i], _mm512_mul_ps(weight, v[i]));
    }
  }
  for (uint64_t g = 0; g < Heads; ++g)
    for (uint64_t i = 0; i < Vectors; ++i)
      _mm512_storeu_ps(y + g * a.y_stride + 16 * i, sums[g][i]);
}

// The columns from d on, fewer than 16, of one head.
template <uint32_t Format>
void last_columns(const weighted_rows& a, uint64_t d, uint64_t h) {
  const uint64_t n = a.width - d;
  float y[16] = {};
  std::memcpy(y, a.y + h * a.y_stride + d, n * sizeof(float));
  for (uint64_t j = 0; j < a.rows; ++j) {
    alignas(64) uint8_t rest[64] = {};
    std::memcpy(rest, a.v + j * a.v_stride + d * element_bytes(Format), n * element_bytes(Format));
    columns<Format, 1, 1>({a.format, rest, 0, a.p + h * a.p_stride + j, 0, y, 0, 1, 16, 1, rest}, 0,
                          0);
  }
  std::memcpy(a.y + h * a.y_stride + d, y, n * sizeof(float));
}

template <uint32_t Format, int Heads>
void sum(const weighted_rows& a, uint64_t h) {
  uint64_t d = 0;
  for (; d + 64 <= a.width; d += 64) columns<Format, 4, Heads>(a, d, h);
  for (; d + 16 <= a.width; d += 16) columns<Format, 1, Heads>(a, d, h);
  if constexpr (!in_blocks(Format))
    if (d != a.width)
      for (uint64_t g = 0; g < Heads; ++g) last_columns<Format>(a, d, h + g);
}

template <uint32_t Format>
void sum(const weighted_rows& a) {
  uint64_t h = 0;
  for (; h + 4 <= a.heads; h += 4) sum<Format, 4>(a, h);
  for (; h + 2 <= a.heads; h += 2) sum<Format, 2>(a, h);
  for (; h < a.heads; ++h) sum<Format, 1>(a, h);
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
    case BITNET_FORMAT_Q8_0:
      return run<BITNET_FORMAT_Q8_0>(a);
    case BITNET_FORMAT_Q4_0:
      return run<BITNET_FORMAT_Q4_0>(a);
    default:
      return;
  }
}

void weighted_sum_avx512(const weighted_rows& a) {
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
