#pragma once
// The types of keys and values, written anew from tensor.h: what the kit tries follows this table.

#include <cstdint>
#include <stdexcept>

#include "bitnet/abi/tensor.h"

namespace bitnet::conformance {

struct kv_type {
  const char* name;
  uint32_t dtype, format;       // BITNET_DTYPE_*, and the format of weights with the same bytes
  uint32_t block, block_bytes;  // elements and bytes of the smallest unit
};

inline constexpr kv_type all_kv_types[] = {
    {"f32", BITNET_DTYPE_F32, BITNET_FORMAT_F32, 1, 4},
    {"f16", BITNET_DTYPE_F16, BITNET_FORMAT_F16, 1, 2},
    {"q8_0", BITNET_DTYPE_Q8_0, BITNET_FORMAT_Q8_0, 32, 34},
    {"q4_0", BITNET_DTYPE_Q4_0, BITNET_FORMAT_Q4_0, 32, 18},
};

inline const kv_type& kv_type_of(uint32_t dtype) {
  for (const kv_type& t : all_kv_types)
    if (t.dtype == dtype) return t;
  throw std::runtime_error("no type of keys or values");
}

// Bytes of one head of one token.
inline uint64_t kv_head_bytes(uint32_t dtype, uint64_t head_dim) {
  const kv_type& t = kv_type_of(dtype);
  return head_dim / t.block * t.block_bytes;
}

// Whether a device keeps this type, by bitnet_device_info::kv_dtypes.
inline bool keeps(uint32_t kv_dtypes, uint32_t dtype) {
  constexpr uint32_t usual = 1u << BITNET_DTYPE_F32 | 1u << BITNET_DTYPE_F16;
  return ((kv_dtypes == 0 ? usual : kv_dtypes) >> dtype & 1) != 0;
}

}  // namespace bitnet::conformance
