// rows.hpp with NEON: what differs from the other forms. The kernels are in
// rows_vector.inl.
#include <arm_neon.h>

#define BITNET_ISA neon
#define BITNET_LANES 4
#define BITNET_CONVERSIONS "conversions_neon.inl"
#include "rows_vector.inl"
