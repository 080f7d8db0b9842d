// Built with -mavx2 -mavxvnni: kernels only, nothing that runs before dispatch, no shared inline
// functions.
#include <immintrin.h>

#include <cstring>

#include "linear_grouped.hpp"

namespace bitnet::cpu {
namespace {

#include "registers_avx2.inl"

constexpr bool in_place = true;
using part = __m256i;  // int32

inline part dot(part sums, vec codes, vec q) {
  return _mm256_dpbusd_avx_epi32(sums, codes, q);
}

inline auto widen(part sums) {
  using wide = int32_t __attribute__((vector_size(32)));
  return reinterpret_cast<wide>(sums);
}

#include "linear_grouped_vector.inl"

}  // namespace

void linear_grouped_avxvnni(const grouped_tile& a) {
  all<2, 4>(a);
}

}  // namespace bitnet::cpu
