#pragma once
// The element types of keys and values: names, sizes, and which of them a device supports.

#include <cstdint>
#include <string>
#include <vector>

#include "bitnet/abi/info.h"
#include "bitnet/abi/tensor.h"
#include "tables/kv_types.hpp"

namespace bitnet::compute {

struct kv_type {
  uint32_t dtype;  // BITNET_DTYPE_*
  const char* name;
  uint32_t block, block_bytes;  // elements and bytes of the smallest unit
};

inline constexpr kv_type kv_types[] = {
#define BITNET_ROW(name, NAME, elements, bytes) {BITNET_DTYPE_##NAME, #name, elements, bytes},
    BITNET_KV_TYPES(BITNET_ROW)
#undef BITNET_ROW
};

inline const kv_type* find_kv_type(uint32_t dtype) {
  for (const kv_type& t : kv_types)
    if (t.dtype == dtype) return &t;
  return nullptr;
}

// Bytes of one head of one token; 0 if a head is no whole number of blocks.
inline uint64_t kv_head_bytes(const kv_type& t, uint64_t head_dim) {
  return head_dim % t.block == 0 ? head_dim / t.block * t.block_bytes : 0;
}

inline bool has_kv_type(const bitnet_device_info& device, uint32_t dtype) {
  const uint32_t usual = 1U << BITNET_DTYPE_F32 | 1U << BITNET_DTYPE_F16;
  return ((device.kv_dtypes != 0 ? device.kv_dtypes : usual) >> dtype & 1) != 0;
}

inline std::vector<std::string> kv_type_names(const bitnet_device_info& device) {
  std::vector<std::string> out;
  for (const kv_type& t : kv_types)
    if (has_kv_type(device, t.dtype)) out.emplace_back(t.name);
  return out;
}

}  // namespace bitnet::compute
