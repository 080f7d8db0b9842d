#pragma once
// The list of types in which this backend keeps keys and values. The device's mask, the conversion
// from a pool's type to a format, and every kernel's switch over formats are made of it.
//
// X(name, NAME): kv_format::name; a pool of BITNET_DTYPE_NAME has the bytes of BITNET_FORMAT_NAME.

#include <cstdint>

#include "bitnet/abi/tensor.h"

// clang-format off: columns.
#define BITNET_CPU_KV_FORMATS(X) \
  X(f32,  F32)                   \
  X(f16,  F16)                   \
  X(q8_0, Q8_0)                  \
  X(q4_0, Q4_0)
// clang-format on

namespace bitnet::cpu {

// The format in which rows of keys and values are read. A kernel has a case for each and no
// default, so that the compiler names a missing one.
enum class kv_format : uint8_t {
  none = 0,  // no format has this number; a kernel reads and writes nothing
#define BITNET_CPU_KV_FORMAT(name, NAME) name = BITNET_FORMAT_##NAME,
  BITNET_CPU_KV_FORMATS(BITNET_CPU_KV_FORMAT)
#undef BITNET_CPU_KV_FORMAT
};

// bitnet_device_info::kv_dtypes: a pool of another type is rejected when it is created.
inline constexpr uint32_t kv_dtypes = 0
#define BITNET_CPU_KV_BIT(name, NAME) | 1u << BITNET_DTYPE_##NAME
    BITNET_CPU_KV_FORMATS(BITNET_CPU_KV_BIT)
#undef BITNET_CPU_KV_BIT
    ;

// The format of a pool's type; none if this backend has no such pool.
constexpr kv_format kv_format_of(uint32_t dtype) {
  switch (dtype) {
#define BITNET_CPU_KV_CASE(name, NAME) \
  case BITNET_DTYPE_##NAME:            \
    return kv_format::name;
    BITNET_CPU_KV_FORMATS(BITNET_CPU_KV_CASE)
#undef BITNET_CPU_KV_CASE
    default:
      return kv_format::none;
  }
}

}  // namespace bitnet::cpu
