// attn_scores.hpp with AVX2 and F16C: what differs from the other forms. The kernels are in
// attn_scores_vector.inl.
#include <immintrin.h>

#define BITNET_ISA avx2
#define BITNET_LANES 8
#define BITNET_CONVERSIONS "conversions_f16c.inl"
#define BITNET_QUERIES_AT_ONCE 1
#define BITNET_VECTORS_AT_ONCE 2
#include "attn_scores_vector.inl"
