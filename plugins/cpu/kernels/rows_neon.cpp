#include <arm_neon.h>

#define BITNET_ISA neon
#define BITNET_LANES 4
#define BITNET_HALVES "halves_neon.inl"
#include "rows_vector.inl"
