// Built with AVX-512 flags: kernels only, nothing that runs before dispatch, no shared inline
// functions.
#include <immintrin.h>

#include "linear_i8.hpp"

namespace bitnet::cpu {
namespace {

using vec = __m512i;
constexpr int64_t offset = 128;
constexpr uint64_t width = 64;
constexpr uint64_t rows_at_once = 2, outputs_at_once = 4;

inline vec load(const void* p) {
  return _mm512_loadu_si512(p);
}

inline vec codes(const uint8_t* w) {
  return load(w);
}

inline vec dot(vec sums, vec c, vec x) {
  return _mm512_dpbusd_epi32(sums, c, x);
}

inline int32_t total(vec sums) {
  return _mm512_reduce_add_epi32(sums);
}

#include "linear_i8_bytes.inl"

}  // namespace

void linear_i8_avx512vnni(const i8_tile& a) {
  multiply_tile<false>(a);
}

void linear_i4_avx512vnni(const i8_tile& a) {
  multiply_tile<true>(a);
}

}  // namespace bitnet::cpu
