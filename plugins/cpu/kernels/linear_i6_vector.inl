// The sums of linear_i6.hpp in registers of 64 bytes: the shared text of the forms, which include
// it inside their anonymous namespace. A single partial may use more registers, so that no sum
// waits for the one before. Kernels only, no shared inline functions.
//
// Expects
//   template <bool Alone> struct partial    of a row and an output; zero when value-initialised
//   void add(partial (&)[Rows], const __m512i (&codes)[Rows][4], const int8_t* high,
//            const int8_t* low)             of 256 elements of each row
//   __m512i lanes(const partial&)           the sums by group
// Gives    `multiply_tile`: a tile of linear_i6.hpp.
// Used by  linear_i6_avx512*.cpp.

#include "prefetch.inl"

constexpr uint64_t outputs_at_once = 4;  // the sums of two rows with so many fill the registers

inline __m512i load(const void* p) {
  return _mm512_loadu_si512(p);
}

// The codes of 256 elements.
[[gnu::always_inline]] inline void unpack(const uint8_t* w, __m512i (&codes)[4]) {
  const __m512i six = _mm512_set1_epi8(63);
  constexpr int first_where_third_else_second = 0xe4;
  __m512i last =
      _mm512_ternarylogic_epi32(_mm512_srli_epi16(load(w), 6), _mm512_srli_epi16(load(w + 64), 4),
                                _mm512_set1_epi8(3), first_where_third_else_second);
  last = _mm512_ternarylogic_epi32(last, _mm512_srli_epi16(load(w + 128), 2), _mm512_set1_epi8(15),
                                   first_where_third_else_second);
  for (uint64_t p = 0; p < 3; ++p) codes[p] = _mm512_and_si512(load(w + 64 * p), six);
  codes[3] = _mm512_and_si512(last, six);
}

// Multiplies lanes by their multipliers, into eight sums.
[[gnu::always_inline]] inline __m512i weighted(__m512i lanes, const uint8_t* multipliers) {
  const __m512i m =
      _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(multipliers)));
  const __m512i even = _mm512_mul_epi32(lanes, m);
  const __m512i odd = _mm512_mul_epi32(_mm512_srli_epi64(lanes, 32), _mm512_srli_epi64(m, 32));
  return _mm512_add_epi64(even, odd);
}

// The totals of eight sums of each row.
template <uint64_t Rows>
[[gnu::always_inline]] inline void store(const __m512i (&sums)[Rows], int64_t* to) {
  const __m512i both = _mm512_add_epi64(_mm512_unpacklo_epi64(sums[0], sums[Rows - 1]),
                                        _mm512_unpackhi_epi64(sums[0], sums[Rows - 1]));
  const __m256i four =
      _mm256_add_epi64(_mm512_castsi512_si256(both), _mm512_extracti64x4_epi64(both, 1));
  const __m128i two =
      _mm_add_epi64(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));
  if constexpr (Rows == 2)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), two);
  else
    *to = _mm_cvtsi128_si64(two);
}

template <uint64_t Rows, uint64_t Outputs>
void multiply(const i6_tile& a, uint64_t r, uint64_t o) {
  const uint8_t* w = a.w + r * (a.k / i6_block * i6_block_bytes);
  partial<Outputs == 1> sums[Outputs][Rows];
#pragma GCC unroll 4
  for (auto& of_output : sums)
#pragma GCC unroll 2
    for (auto& sum : of_output) sum = partial<Outputs == 1>{};
  for (uint64_t at = 0; at < a.k; at += i6_block, w += Rows * i6_block_bytes) {
    if (o == 0) prefetch_step<Rows, i6_block_bytes>(w, 0, a.ahead);
    __m512i codes[Rows][4];
    for (uint64_t i = 0; i < Rows; ++i) unpack(w + i * i6_block_bytes, codes[i]);
#pragma GCC unroll 4
    for (uint64_t j = 0; j < Outputs; ++j)
      add(sums[j], codes, a.high + (o + j) * a.x_stride + at, a.low + (o + j) * a.x_stride + at);
  }
#pragma GCC unroll 4
  for (uint64_t j = 0; j < Outputs; ++j) {
    const __m512i starts = load(a.starts + (o + j) * i6_groups);
    __m512i of_rows[Rows];
#pragma GCC unroll 2
    for (uint64_t i = 0; i < Rows; ++i)
      of_rows[i] = weighted(_mm512_add_epi32(lanes(sums[j][i]), starts),
                            a.multipliers + (r + i) * i6_groups);
    store(of_rows, a.sums + (o + j) * a.sums_stride + r);
  }
}

template <uint64_t Outputs>
inline void all_rows(const i6_tile& a, uint64_t o) {
  uint64_t r = 0;
  for (; r + 2 <= a.rows; r += 2) multiply<2, Outputs>(a, r, o);
  if (r < a.rows) multiply<1, Outputs>(a, r, o);
}

inline void multiply_tile(const i6_tile& a) {
  uint64_t o = 0;
  for (; o + outputs_at_once <= a.outputs; o += outputs_at_once) all_rows<outputs_at_once>(a, o);
  for (; o + 2 <= a.outputs; o += 2) all_rows<2>(a, o);
  if (o < a.outputs) all_rows<1>(a, o);
}
