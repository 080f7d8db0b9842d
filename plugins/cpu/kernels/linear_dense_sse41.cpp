// linear_dense.hpp with SSE4.1: what differs from the other forms. The kernels are in
// linear_dense_vector.inl.
#include <immintrin.h>

// For sixteen registers: one row and two tokens, or two heads, leave enough for decoding.
#define BITNET_ISA sse41
#define BITNET_CONVERSIONS "conversions_sse41.inl"
#define BITNET_ROWS_AT_ONCE 1
#define BITNET_TOKENS_AT_ONCE 2
#define BITNET_HEADS_AT_ONCE 2
#include "linear_dense_vector.inl"
