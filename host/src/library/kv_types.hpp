#pragma once
// Types of keys and values, by their names in options and receipts.

#include <cstdint>
#include <string_view>

#include "bitnet/abi/tensor.h"
#include "bitnet/bitnet.h"
#include "tables/kv_types.hpp"

namespace bitnet::host {

struct kv_type {
  std::string_view name;
  uint32_t id;               // BITNET_KV_*
  uint32_t elements, bytes;  // per smallest unit
};

inline constexpr kv_type kv_types[] = {
#define BITNET_ROW(name, NAME, elements, bytes) {#name, BITNET_KV_##NAME, elements, bytes},
    BITNET_KV_TYPES(BITNET_ROW)
#undef BITNET_ROW
};

// The type of that name; f16, the default, for an unknown name.
constexpr const kv_type& kv_type_named(std::string_view name) {
  const kv_type* usual = nullptr;
  for (const kv_type& t : kv_types) {
    if (t.name == name) return t;
    if (t.id == BITNET_KV_F16) usual = &t;
  }
  return *usual;
}

}  // namespace bitnet::host
