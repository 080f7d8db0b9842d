#define BITNET_ISA avx2
#define BITNET_LANES 8
#include "rows_vector.inl"
