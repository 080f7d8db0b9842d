// rows.hpp with SSE4.1: what differs from the other forms. The kernels are in
// rows_vector.inl.
#include <immintrin.h>

#define BITNET_ISA sse41
#define BITNET_LANES 4
#define BITNET_CONVERSIONS "conversions_sse41.inl"
#include "rows_vector.inl"
