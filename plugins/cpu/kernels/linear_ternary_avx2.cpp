// Built with -mavx2: kernels only, nothing that runs before dispatch, no shared inline functions.
#include <immintrin.h>

#include <cstring>

#include "linear_ternary.hpp"

namespace bitnet::cpu {
namespace {

__m256i load(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

int32_t sum_lanes(__m256i v) {
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
  return _mm_cvtsi128_si32(s);
}

// One group of 128 elements of Rows rows, against Tokens tokens. The sum of four planes stays in an
// int16 lane: 4 * 2 * 3 * 128 = 3072, even for bytes that break the format. It leaves that lane at
// once; several groups together would not fit.
template <int Rows, int Tokens>
void add_group(const uint8_t* w, uint64_t stride, const int8_t* const* q,
               __m256i (&sums)[Rows][Tokens]) {
  const __m256i three = _mm256_set1_epi8(3), ones = _mm256_set1_epi16(1);
  for (int r = 0; r < Rows; ++r) {
    const __m256i codes = load(w + static_cast<uint64_t>(r) * stride);
    const __m256i plane0 = _mm256_and_si256(_mm256_srli_epi16(codes, 6), three);
    const __m256i plane1 = _mm256_and_si256(_mm256_srli_epi16(codes, 4), three);
    const __m256i plane2 = _mm256_and_si256(_mm256_srli_epi16(codes, 2), three);
    const __m256i plane3 = _mm256_and_si256(codes, three);
    for (int t = 0; t < Tokens; ++t) {
      const __m256i low = _mm256_add_epi16(_mm256_maddubs_epi16(plane0, load(q[t])),
                                           _mm256_maddubs_epi16(plane1, load(q[t] + 32)));
      const __m256i high = _mm256_add_epi16(_mm256_maddubs_epi16(plane2, load(q[t] + 64)),
                                            _mm256_maddubs_epi16(plane3, load(q[t] + 96)));
      sums[r][t] =
          _mm256_add_epi32(sums[r][t], _mm256_madd_epi16(_mm256_add_epi16(low, high), ones));
    }
  }
}

struct activations {
  const int8_t* q[4];
  int8_t tail[4][128];  // what is left of a token past whole groups, then zeros
  int32_t sum[4];
};

template <int Rows, int Tokens>
void tile(const ternary_tile& a, const activations& x, uint64_t r, uint64_t t) {
  __m256i sums[Rows][Tokens];
  for (int i = 0; i < Rows; ++i)
    for (int j = 0; j < Tokens; ++j) sums[i][j] = _mm256_setzero_si256();
  const uint8_t* w = a.w + r * a.w_stride;
  const int8_t* q[Tokens];
  for (int j = 0; j < Tokens; ++j) q[j] = x.q[j];
  for (uint64_t g = 0; g < a.k / 128; ++g, w += 32) {
    if constexpr (Tokens == 1)
      for (int i = 0; i < Rows; ++i)  // decode streams: 8 KiB ahead
        _mm_prefetch(
            reinterpret_cast<const char*>(w) + static_cast<uint64_t>(i) * a.w_stride + 8192,
            _MM_HINT_T1);
    add_group<Rows, Tokens>(w, a.w_stride, q, sums);
    for (int j = 0; j < Tokens; ++j) q[j] += 128;
  }
  if (a.k % 128 != 0) {
    for (int j = 0; j < Tokens; ++j) q[j] = x.tail[j];
    add_group<Rows, Tokens>(w, a.w_stride, q, sums);
  }
  for (int i = 0; i < Rows; ++i)
    for (int j = 0; j < Tokens; ++j)
      a.sums[(t + static_cast<uint64_t>(j)) * a.sums_stride + r + static_cast<uint64_t>(i)] =
          sum_lanes(sums[i][j]) - x.sum[j];
}

template <int Rows, int Tokens>
void tokens(const ternary_tile& a, uint64_t t) {
  const __m256i ones8 = _mm256_set1_epi8(1), ones16 = _mm256_set1_epi16(1);
  activations x;
  for (int j = 0; j < Tokens; ++j) {
    const int8_t* q = a.q + (t + static_cast<uint64_t>(j)) * a.q_stride;
    const uint64_t whole = a.k / 128 * 128;
    x.q[j] = q;
    std::memset(x.tail[j], 0, sizeof x.tail[j]);
    std::memcpy(x.tail[j], q + whole, a.k - whole);
    __m256i sum = _mm256_setzero_si256();
    const auto add = [&](const int8_t* p) {
      const __m256i pairs = _mm256_maddubs_epi16(ones8, load(p));
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones16));
    };
    for (uint64_t i = 0; i < whole; i += 32) add(q + i);
    for (int i = 0; i < 128; i += 32) add(x.tail[j] + i);
    x.sum[j] = sum_lanes(sum);
  }
  uint64_t r = 0;
  for (; r + Rows <= a.rows; r += Rows) tile<Rows, Tokens>(a, x, r, t);
  for (; r < a.rows; ++r) tile<1, Tokens>(a, x, r, t);
}

}  // namespace

void linear_ternary_avx2(const ternary_tile& a) {
  uint64_t t = 0;
  for (; t + 4 <= a.tokens; t += 4) tokens<2, 4>(a, t);
  for (; t < a.tokens; ++t) tokens<4, 1>(a, t);
}

}  // namespace bitnet::cpu
