// Built with -msse4.1: kernels only, nothing that runs before dispatch, no shared inline functions.
#include <smmintrin.h>

#include <cstring>

#include "linear_grouped.hpp"
#include "linear_panel.hpp"

namespace bitnet::cpu {
namespace {

using vec = __m128i;
constexpr uint64_t lanes = 4;

inline vec spread(const int8_t* q) {
  int32_t four;
  std::memcpy(&four, q, sizeof four);
  return _mm_set1_epi32(four);
}

inline vec quarters(const uint8_t* const* rows, uint64_t at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[0] + at));
}

inline vec low_words(vec a, vec b) {
  return _mm_unpacklo_epi32(a, b);
}
inline vec high_words(vec a, vec b) {
  return _mm_unpackhi_epi32(a, b);
}
inline vec low_pairs(vec a, vec b) {
  return _mm_unpacklo_epi64(a, b);
}
inline vec high_pairs(vec a, vec b) {
  return _mm_unpackhi_epi64(a, b);
}

// int16: 32 times two products of 3 * 128 at most.
using part = __m128i;

// _mm_add_epi16, of which g++ 12 copies the sums.
inline part dot(part sums, vec codes, vec q) {
  asm("paddw %1, %0" : "+x"(sums) : "x"(_mm_maddubs_epi16(codes, q)));
  return sums;
}

inline auto widen(part sums) {
  using wide = int32_t __attribute__((vector_size(16)));
  return reinterpret_cast<wide>(_mm_madd_epi16(sums, _mm_set1_epi16(1)));
}

constexpr uint64_t registers = 2, at_once = 4, steps_of_part = 32;

#include "linear_panel_vector.inl"

}  // namespace

void linear_panel_sse41(const panel_tile& a) {
  all(a);
}

}  // namespace bitnet::cpu
