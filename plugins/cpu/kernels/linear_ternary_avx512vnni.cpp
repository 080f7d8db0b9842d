// Built with AVX-512 flags: kernels only, nothing that runs before dispatch, no shared inline
// functions.
#include <immintrin.h>

#include <cstring>

#include "linear_ternary.hpp"

namespace bitnet::cpu {
namespace {

#include "prefetch.inl"
#include "products_avx512vnni.inl"

// A line is 64 bytes of codes: each plane of it has 32 elements of one packed group, and 32 of the
// next.
constexpr uint64_t line_elements = 256, planes = 4;
// Elements whose activations are arranged at once. For four tokens they take 32 KB of the stack, of
// which a thread may have 128 KB (tests/api/stack_test.cpp); usual rows are one block.
constexpr uint64_t most_block = 8192;

inline __m256i half(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

// Activations plane by plane; zeros after the end.
template <int Tokens>
struct activations {
  alignas(64) int8_t q[most_block / line_elements][planes][Tokens][64];
  int32_t sum[Tokens];
};

template <int Tokens>
void arrange(const ternary_tile& a, uint64_t t, uint64_t from, uint64_t n, activations<Tokens>& x) {
  const __m512i ones = _mm512_set1_epi8(1);
  for (uint64_t j = 0; j < Tokens; ++j) {
    const int8_t* q = a.q + (t + j) * a.q_stride + from;
    __m512i sum = _mm512_setzero_si512();
    for (uint64_t e = 0; e < n; e += line_elements) {
      int8_t last[line_elements] = {};
      const int8_t* at = q + e;
      if (n - e < line_elements) {
        std::memcpy(last, at, n - e);
        at = last;
      }
      for (uint64_t p = 0; p < planes; ++p) {
        const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(half(at + 32 * p)),
                                                half(at + 128 + 32 * p), 1);
        _mm512_store_si512(x.q[e / line_elements][p][j], both);
        sum = _mm512_dpbusd_epi32(sum, ones, both);
      }
    }
    x.sum[j] = _mm512_reduce_add_epi32(sum);
  }
}

// Line i of a row. n elements remain from there: half of the last line may be missing.
inline __m512i codes_of(const uint8_t* w, uint64_t i, uint64_t n) {
  const uint8_t* at = w + 64 * i;
  if (n > 128) return _mm512_loadu_si512(at);
  return _mm512_zextsi256_si512(half(at));
}

constexpr uint64_t rows_together = 4;

// The sums of a row with a few tokens, by lane. Codes keep their place in the byte, times 1, 4, 16
// or 64. Each plane has its own sums, two of them so that none waits for the one before; they are
// shifted at the end.
template <int Tokens>
void add_row(const uint8_t* w, uint64_t n, uint64_t ahead, const activations<Tokens>& x,
             __m512i (&out)[Tokens]) {
  constexpr uint64_t chains = 2, together = 4;  // lines prefetched at a time
  __m512i sums[chains][planes][Tokens];
  for (auto& chain : sums)
    for (auto& plane : chain)
      for (__m512i& sum : plane) sum = _mm512_setzero_si512();
  const auto add = [&](__m512i codes, uint64_t i, __m512i(&to)[planes][Tokens]) {
    for (uint64_t p = 0; p < planes; ++p) {
      const auto of_plane = static_cast<char>(192 >> (2 * p));
      const __m512i plane = _mm512_and_si512(codes, _mm512_set1_epi8(of_plane));
      for (int j = 0; j < Tokens; ++j) add_products(to[p][j], plane, x.q[i][p][j]);
    }
  };
  uint64_t i = 0;
  for (; i + together <= n / line_elements; i += together) {
    prefetch_step<1, 64 * together>(w, i / together, ahead);
    for (uint64_t c = 0; c < together; ++c)
      add(_mm512_loadu_si512(w + 64 * (i + c)), i + c, sums[c % chains]);
  }
  for (; i * line_elements < n; ++i) {
    prefetch_step<1, 64>(w, i, ahead);
    add(codes_of(w, i, n - i * line_elements), i, sums[0]);
  }
  for (int j = 0; j < Tokens; ++j) {
    out[j] = _mm512_setzero_si512();
    for (uint64_t p = 0; p < planes; ++p)
      out[j] = _mm512_add_epi32(_mm512_srai_epi32(out[j], 2),
                                _mm512_add_epi32(sums[0][p][j], sums[1][p][j]));
  }
}

// A line of four rows by some tokens: each loaded register serves all. q: (planes, tokens, 64).
template <int Tokens>
[[gnu::always_inline]] inline void add_lines(__m512i (&codes)[rows_together],
                                             const int8_t (&q)[planes][Tokens][64],
                                             __m512i (&sums)[rows_together][Tokens]) {
  const __m512i three = _mm512_set1_epi8(3);
#pragma GCC unroll 4
  for (uint64_t i = 0; i < planes; ++i) {
    __m512i x[Tokens];
#pragma GCC unroll 4
    for (uint64_t j = 0; j < Tokens; ++j) x[j] = _mm512_load_si512(q[planes - 1 - i][j]);
#pragma GCC unroll 4
    for (uint64_t r = 0; r < rows_together; ++r) {
      const __m512i plane = _mm512_and_si512(codes[r], three);
#pragma GCC unroll 4
      for (uint64_t j = 0; j < Tokens; ++j) add_products(sums[r][j], plane, x[j]);
      codes[r] = _mm512_srli_epi16(codes[r], 2);
    }
  }
}

// g++ 12 keeps sums in memory unless they are local to this function and each loop over them is
// unrolled explicitly.
template <int Tokens>
void add_tile(const uint8_t* const (&w)[rows_together], uint64_t n, paced_prefetch& to_come,
              const activations<Tokens>& x, __m512i (&out)[rows_together][Tokens]) {
  paced_prefetch next = to_come;
  __m512i sums[rows_together][Tokens];
#pragma GCC unroll 4
  for (uint64_t r = 0; r < rows_together; ++r)
#pragma GCC unroll 4
    for (uint64_t j = 0; j < Tokens; ++j) sums[r][j] = _mm512_setzero_si512();
  __m512i codes[rows_together];
  for (uint64_t i = 0; i * line_elements < n; ++i) {
#pragma GCC unroll 4
    for (uint64_t r = 0; r < rows_together; ++r)
      codes[r] = codes_of(w[r], i, n - i * line_elements);
    next.count(64 * rows_together);
    add_lines<Tokens>(codes, x.q[i], sums);
  }
  to_come = next;
#pragma GCC unroll 4
  for (uint64_t r = 0; r < rows_together; ++r)
#pragma GCC unroll 4
    for (uint64_t j = 0; j < Tokens; ++j) out[r][j] = sums[r][j];
}

// One or two tokens take one row after the other, so that the weights are one stream of memory.
// With more tokens, or Shared, four rows go together. Totals are computed for four rows at once.
template <int Tokens, bool Shared>
void tokens(const ternary_tile& a, uint64_t t, uint64_t pass = 0, uint64_t passes = 1) {
  activations<Tokens> x;
  paced_prefetch next(a.w + a.rows * a.w_stride, a.rows * a.w_stride, pass, passes);
  for (uint64_t from = 0; from < a.k; from += most_block) {
    const uint64_t n = a.k - from < most_block ? a.k - from : most_block;
    arrange<Tokens>(a, t, from, n, x);
    for (uint64_t r = 0; r < a.rows; r += rows_together) {
      const uint64_t rows = a.rows - r < rows_together ? a.rows - r : rows_together;
      const uint8_t* w[rows_together];  // the last row is repeated
      for (uint64_t i = 0; i < rows_together; ++i)
        w[i] = a.w + (r + (i < rows ? i : rows - 1)) * a.w_stride + from / 4;
      __m512i sums[rows_together][Tokens] = {};
      if constexpr (Shared)
        add_tile(w, n, next, x, sums);
      else
        for (uint64_t i = 0; i < rows; ++i) add_row<Tokens>(w[i], n, a.ahead, x, sums[i]);
      for (int j = 0; j < Tokens; ++j) {
        int32_t* to = a.sums + (t + static_cast<uint64_t>(j)) * a.sums_stride + r;
        int32_t out[rows_together];
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out),
                         totals(sums[0][j], sums[1][j], sums[2][j], sums[3][j]));
        for (uint64_t i = 0; i < rows; ++i) to[i] = out[i] - x.sum[j] + (from == 0 ? 0 : to[i]);
      }
    }
  }
}

}  // namespace

// Passes have nearly the same number of tokens, so that none has a single one.
void linear_ternary_avx512vnni(const ternary_tile& a) {
  // With four tokens the sums of four rows, their codes, a plane and a mask, and the activations
  // take 26 of 32 registers, and products are 0.97 of what the instruction alone does
  // (docs/explain/kernel-ladder.md), so more tokens to a pass would gain little.
  constexpr uint64_t most = 4;
  if (a.tokens == 1) return tokens<1, false>(a, 0);
  if (a.tokens == 2) return tokens<2, false>(a, 0);
  const uint64_t passes = (a.tokens + most - 1) / most;
  for (uint64_t pass = 0; pass < passes; ++pass) {
    const uint64_t first = a.tokens * pass / passes, n = a.tokens * (pass + 1) / passes - first;
    if (n == 4)
      tokens<4, true>(a, first, pass, passes);
    else if (n == 3)
      tokens<3, true>(a, first, pass, passes);
    else
      tokens<2, true>(a, first, pass, passes);
  }
}

}  // namespace bitnet::cpu
