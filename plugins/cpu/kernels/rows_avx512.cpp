#define BITNET_ISA avx512
#define BITNET_LANES 16
#include "rows_vector.inl"
