// linear_dense.hpp with NEON: what differs from the other forms. The kernels are in
// linear_dense_vector.inl.
#include <arm_neon.h>

// For thirty-two registers.
#define BITNET_ISA neon
#define BITNET_CONVERSIONS "conversions_neon.inl"
#define BITNET_ROWS_AT_ONCE 2
#define BITNET_TOKENS_AT_ONCE 2
#define BITNET_HEADS_AT_ONCE 4
#include "linear_dense_vector.inl"
