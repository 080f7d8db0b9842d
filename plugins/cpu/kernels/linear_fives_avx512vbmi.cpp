// Built with AVX-512 flags: kernels only, nothing that runs before dispatch, no shared inline
// functions.
#include <immintrin.h>

#include "linear_fives.hpp"

namespace bitnet::cpu {
namespace {

#include "prefetch.inl"
#include "products_avx512vnni.inl"

constexpr uint64_t planes = 5;
constexpr uint64_t most_lines = 24;  // most whose activations are arranged at once

// Activations of one token.
struct activations {
  alignas(64) int8_t q[most_lines][planes][64];  // zeros behind the end
  int32_t sum;
};

void arrange(const int8_t* q, uint64_t n, activations& x) {
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i sum = _mm512_setzero_si512();
  for (uint64_t i = 0; i * fives_line < n; ++i)
    for (uint64_t p = 0; p < planes; ++p) {
      const uint64_t at = i * fives_line + 64 * p;
      const __m512i part = at < n ? _mm512_loadu_si512(q + at) : _mm512_setzero_si512();
      _mm512_store_si512(x.q[i][p], part);
      add_products(sum, ones, part);
    }
  x.sum = _mm512_reduce_add_epi32(sum);
}

// The four digits of each number below 81, the first in bits 7:6: codes as in linear_ternary.
struct digits {
  alignas(64) uint8_t of[128] = {};
  constexpr digits() {
    for (unsigned n = 0; n < 81; ++n)
      of[n] = static_cast<uint8_t>(n % 3 << 6 | n / 3 % 3 << 4 | n / 9 % 3 << 2 | n / 27);
  }
};
constexpr digits table;

// The sums of a row by lane. The fifth digit stays in its byte, times 81; the others are where the
// table puts them, times 1 to 64. The sums are divided at the end, without a remainder.
__m512i add_row(const uint8_t* w, uint64_t lines, uint64_t ahead, const activations& x) {
  constexpr uint64_t together = 4;  // lines prefetched at a time
  const __m512i fifth = _mm512_set1_epi8(81);
  const __m512i low = _mm512_load_si512(table.of), high = _mm512_load_si512(table.of + 64);
  __m512i sums[planes];
  for (__m512i& sum : sums) sum = _mm512_setzero_si512();
  const auto add = [&](uint64_t i) __attribute__((always_inline)) {
    const __m512i all = _mm512_loadu_si512(w + 64 * i);
    __m512i four = _mm512_min_epu8(all, _mm512_sub_epi8(all, fifth));
    four = _mm512_min_epu8(four, _mm512_sub_epi8(four, fifth));
    add_products(sums[4], _mm512_sub_epi8(all, four), x.q[i][4]);
    const __m512i codes = _mm512_permutex2var_epi8(low, four, high);
    for (uint64_t p = 0; p < 4; ++p) {
      const auto of_plane = static_cast<char>(192 >> (2 * p));
      add_products(sums[p], _mm512_and_si512(codes, _mm512_set1_epi8(of_plane)), x.q[i][p]);
    }
  };
  uint64_t i = 0;
  for (; i + together <= lines; i += together) {
    prefetch_step<1, 64 * together>(w, i / together, ahead);
    for (uint64_t c = 0; c < together; ++c) add(i + c);
  }
  for (; i < lines; ++i) {
    prefetch_step<1, 64>(w, i, ahead);
    add(i);
  }
  const __m512i by_81 = _mm512_set1_epi32(0x781948b1);  // 81 times this is 1 modulo 2^32
  __m512i out = _mm512_setzero_si512();
  for (uint64_t p = 0; p < 4; ++p) out = _mm512_add_epi32(_mm512_srai_epi32(out, 2), sums[p]);
  return _mm512_add_epi32(out, _mm512_mullo_epi32(sums[4], by_81));
}

// One row after the other, so that the weights are one stream of memory; the totals of four rows
// are computed together.
void token(const ternary_tile& a, const int8_t* q, int32_t* sums) {
  constexpr uint64_t rows_together = 4, most = most_lines * fives_line;
  activations x;
  for (uint64_t from = 0; from < a.k; from += most) {
    const uint64_t n = a.k - from < most ? a.k - from : most;
    arrange(q + from, n, x);
    for (uint64_t r = 0; r < a.rows; r += rows_together) {
      const uint64_t rows = a.rows - r < rows_together ? a.rows - r : rows_together;
      __m512i of_rows[rows_together] = {};
      for (uint64_t i = 0; i < rows; ++i)
        of_rows[i] = add_row(a.w + (r + i) * a.w_stride + from / fives_line * 64,
                             (n + fives_line - 1) / fives_line, a.ahead, x);
      int32_t out[rows_together];
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out),
                       totals(of_rows[0], of_rows[1], of_rows[2], of_rows[3]));
      for (uint64_t i = 0; i < rows; ++i)
        sums[r + i] = out[i] - x.sum + (from == 0 ? 0 : sums[r + i]);
    }
  }
}

}  // namespace

void linear_fives_avx512vbmi(const ternary_tile& a) {
  for (uint64_t t = 0; t < a.tokens; ++t)
    token(a, a.q + t * a.q_stride, a.sums + t * a.sums_stride);
}

bool code_fives_avx512vbmi(const fives_rows& a) {
  const __m512i three = _mm512_set1_epi8(3);
  // 64 codes are half of a packed group: two planes of its 32 bytes.
  const __m512i halves[] = {_mm512_inserti64x4(_mm512_set1_epi16(6), _mm256_set1_epi16(4), 1),
                            _mm512_inserti64x4(_mm512_set1_epi16(2), _mm256_setzero_si256(), 1)};
  __m512i largest = _mm512_setzero_si512();
  uint8_t* to = a.to;
  for (uint64_t r = 0; r < a.rows; ++r)
    for (uint64_t from = 0; from < a.k; from += fives_line, to += 64) {
      __m512i sum = _mm512_setzero_si512();
      for (uint64_t p = planes; p-- > 0;) {
        const uint64_t e = from + 64 * p;
        if (e >= a.k) continue;
        const uint8_t* group = a.from + r * a.from_stride + e / 128 * 32;
        const __m512i both =
            _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(group)));
        const __m512i codes = _mm512_and_si512(_mm512_srlv_epi16(both, halves[e / 64 % 2]), three);
        largest = _mm512_max_epu8(largest, codes);
        sum = _mm512_add_epi8(_mm512_add_epi8(sum, sum), _mm512_add_epi8(sum, codes));
      }
      _mm512_storeu_si512(to, sum);
    }
  return _mm512_cmpeq_epi8_mask(largest, three) == 0;
}

}  // namespace bitnet::cpu
