// attn_scores.hpp with SSE4.1: what differs from the other forms. The kernels are in
// attn_scores_vector.inl.
#include <immintrin.h>

#define BITNET_ISA sse41
#define BITNET_LANES 4
#define BITNET_CONVERSIONS "conversions_sse41.inl"
#define BITNET_QUERIES_AT_ONCE 1
#define BITNET_VECTORS_AT_ONCE 2
#include "attn_scores_vector.inl"
