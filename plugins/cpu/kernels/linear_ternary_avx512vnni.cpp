// Built with AVX-512 flags: kernels only, nothing that runs before dispatch, no shared inline
// functions.
#include <immintrin.h>

#include <cstring>

#include "linear_ternary.hpp"

namespace bitnet::cpu {
namespace {

#include "ahead.inl"

__m256i half(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

// Two groups of 128 elements at once: a 64-byte line of codes. Plane j of both multiplies the 32
// activations at q + 32 j and the 32 at q + 128 + 32 j.
template <int Rows, int Tokens>
void add_pair(const uint8_t* w, uint64_t stride, const int8_t* const* q,
              __m512i (&sums)[Rows][Tokens]) {
  const __m512i three = _mm512_set1_epi8(3);
  __m512i codes[Rows];
  for (int r = 0; r < Rows; ++r)
    codes[r] = _mm512_loadu_si512(w + static_cast<uint64_t>(r) * stride);
  for (int64_t j = 3; j >= 0; --j) {
    __m512i x[Tokens];
    for (int t = 0; t < Tokens; ++t)
      x[t] = _mm512_inserti64x4(_mm512_castsi256_si512(half(q[t] + 32 * j)),
                                half(q[t] + 128 + 32 * j), 1);
    for (int r = 0; r < Rows; ++r) {
      const __m512i plane = _mm512_and_si512(codes[r], three);
      for (int t = 0; t < Tokens; ++t) sums[r][t] = _mm512_dpbusd_epi32(sums[r][t], plane, x[t]);
      codes[r] = _mm512_srli_epi16(codes[r], 2);
    }
  }
}

// One group: the upper halves are zero.
template <int Rows, int Tokens>
void add_group(const uint8_t* w, uint64_t stride, const int8_t* const* q,
               __m512i (&sums)[Rows][Tokens]) {
  const __m512i three = _mm512_set1_epi8(3);
  for (int r = 0; r < Rows; ++r) {
    __m512i codes = _mm512_zextsi256_si512(half(w + static_cast<uint64_t>(r) * stride));
    for (int64_t j = 3; j >= 0; --j) {
      const __m512i plane = _mm512_and_si512(codes, three);
      for (int t = 0; t < Tokens; ++t)
        sums[r][t] =
            _mm512_dpbusd_epi32(sums[r][t], plane, _mm512_zextsi256_si512(half(q[t] + 32 * j)));
      codes = _mm512_srli_epi16(codes, 2);
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
  __m512i sums[Rows][Tokens];
  for (int i = 0; i < Rows; ++i)
    for (int j = 0; j < Tokens; ++j) sums[i][j] = _mm512_setzero_si512();
  const uint8_t* const rows = a.w + r * a.w_stride;
  const uint8_t* w = rows;
  const int8_t* q[Tokens];
  for (int j = 0; j < Tokens; ++j) q[j] = x.q[j];
  const uint64_t groups = a.k / 128;
  for (uint64_t g = 0; g < groups / 2; ++g, w += 64) {
    if constexpr (Tokens == 1) ask_ahead<Rows, 64>(rows, g, a.ahead);
    add_pair<Rows, Tokens>(w, a.w_stride, q, sums);
    for (int j = 0; j < Tokens; ++j) q[j] += 256;
  }
  if (groups % 2 != 0) {
    add_group<Rows, Tokens>(w, a.w_stride, q, sums);
    w += 32;
  }
  if (a.k % 128 != 0) {
    for (int j = 0; j < Tokens; ++j) q[j] = x.tail[j];
    add_group<Rows, Tokens>(w, a.w_stride, q, sums);
  }
  for (int i = 0; i < Rows; ++i)
    for (int j = 0; j < Tokens; ++j)
      a.sums[(t + static_cast<uint64_t>(j)) * a.sums_stride + r + static_cast<uint64_t>(i)] =
          _mm512_reduce_add_epi32(sums[i][j]) - x.sum[j];
}

template <int Rows, int Tokens>
void tokens(const ternary_tile& a, uint64_t t) {
  const __m512i ones = _mm512_set1_epi8(1);
  activations x;
  for (int j = 0; j < Tokens; ++j) {
    const int8_t* q = a.q + (t + static_cast<uint64_t>(j)) * a.q_stride;
    const uint64_t whole = a.k / 128 * 128;
    x.q[j] = q;
    std::memset(x.tail[j], 0, sizeof x.tail[j]);
    std::memcpy(x.tail[j], q + whole, a.k - whole);
    __m512i sum = _mm512_dpbusd_epi32(_mm512_setzero_si512(), ones, _mm512_loadu_si512(x.tail[j]));
    sum = _mm512_dpbusd_epi32(sum, ones, _mm512_loadu_si512(x.tail[j] + 64));
    for (uint64_t i = 0; i < whole; i += 64)
      sum = _mm512_dpbusd_epi32(sum, ones, _mm512_loadu_si512(q + i));
    x.sum[j] = _mm512_reduce_add_epi32(sum);
  }
  uint64_t r = 0;
  for (; r + Rows <= a.rows; r += Rows) tile<Rows, Tokens>(a, x, r, t);
  for (; r < a.rows; ++r) tile<1, Tokens>(a, x, r, t);
}

}  // namespace

void linear_ternary_avx512vnni(const ternary_tile& a) {
  uint64_t t = 0;
  for (; t + 4 <= a.tokens; t += 4) tokens<4, 4>(a, t);
  for (; t < a.tokens; ++t) tokens<4, 1>(a, t);
}

}  // namespace bitnet::cpu
