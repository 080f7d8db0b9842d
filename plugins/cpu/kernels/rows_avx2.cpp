// rows.hpp with AVX2 and F16C: what differs from the other forms. The kernels are in
// rows_vector.inl.
#include <immintrin.h>

#define BITNET_ISA avx2
#define BITNET_LANES 8
#define BITNET_CONVERSIONS "conversions_f16c.inl"
#include "rows_vector.inl"
