// attn_scores.hpp with NEON: what differs from the other forms. The kernels are in
// attn_scores_vector.inl.
#include <arm_neon.h>

#define BITNET_ISA neon
#define BITNET_LANES 4
#define BITNET_CONVERSIONS "conversions_neon.inl"
#define BITNET_QUERIES_AT_ONCE 1
#define BITNET_VECTORS_AT_ONCE 4
#include "attn_scores_vector.inl"
