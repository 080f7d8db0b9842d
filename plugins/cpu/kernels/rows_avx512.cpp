// rows.hpp with AVX-512: what differs from the other forms. The kernels are in
// rows_vector.inl.
#include <immintrin.h>

#define BITNET_ISA avx512
#define BITNET_LANES 16
#define BITNET_CONVERSIONS "conversions_f16c.inl"
#include "rows_vector.inl"
