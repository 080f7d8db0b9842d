// attn_scores.hpp with AVX-512: what differs from the other forms. The kernels are in
// attn_scores_vector.inl.
#include <immintrin.h>

#define BITNET_ISA avx512
#define BITNET_LANES 16
#define BITNET_CONVERSIONS "conversions_f16c.inl"
#define BITNET_QUERIES_AT_ONCE 4
#define BITNET_VECTORS_AT_ONCE 1
#include "attn_scores_vector.inl"
