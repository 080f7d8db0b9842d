#define BITNET_ISA sse41
#define BITNET_LANES 4
#define BITNET_HALVES "halves_integer.inl"
#include "rows_vector.inl"
