// Built with AVX-512 flags: kernels only, nothing that runs before dispatch, no shared inline
// functions.
#include <immintrin.h>

#include "linear_i8.hpp"

namespace bitnet::cpu {
namespace {

// sum((c - 128) x) = 128 sum(c high) + sum(c low) - 128 sum(x).
template <int Rows>
void tile(const i8_tile& a, uint64_t r) {
  __m512i high[Rows], low[Rows];
  for (int i = 0; i < Rows; ++i) high[i] = low[i] = _mm512_setzero_si512();
  const uint8_t* w = a.w + r * a.w_stride;
  for (uint64_t k = 0; k < a.k; k += 64) {
    const __m512i x_high = _mm512_loadu_si512(a.high + k), x_low = _mm512_loadu_si512(a.low + k);
    for (int i = 0; i < Rows; ++i) {
      const uint8_t* at = w + static_cast<uint64_t>(i) * a.w_stride + k;
      _mm_prefetch(reinterpret_cast<const char*>(at) + 8192, _MM_HINT_T1);
      const __m512i codes = _mm512_loadu_si512(at);
      high[i] = _mm512_dpbusd_epi32(high[i], codes, x_high);
      low[i] = _mm512_dpbusd_epi32(low[i], codes, x_low);
    }
  }
  for (int i = 0; i < Rows; ++i)
    a.sums[r + static_cast<uint64_t>(i)] = int64_t{128} * _mm512_reduce_add_epi32(high[i]) +
                                           _mm512_reduce_add_epi32(low[i]) - 128 * a.x_sum;
}

}  // namespace

void linear_i8_avx512vnni(const i8_tile& a) {
  uint64_t r = 0;
  for (; r + 4 <= a.rows; r += 4) tile<4>(a, r);
  for (; r < a.rows; ++r) tile<1>(a, r);
}

}  // namespace bitnet::cpu
