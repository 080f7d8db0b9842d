#include <immintrin.h>

#define BITNET_ISA avx512
#define BITNET_LANES 16
#define BITNET_HALVES "halves_f16c.inl"
#include "rows_vector.inl"
