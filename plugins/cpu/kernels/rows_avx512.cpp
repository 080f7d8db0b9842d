#include <immintrin.h>

#define BITNET_ISA avx512
#define BITNET_LANES 16
#define BITNET_CONVERSIONS "conversions_f16c.inl"
#include "rows_vector.inl"
