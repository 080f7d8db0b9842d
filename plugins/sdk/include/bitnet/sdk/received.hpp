// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// Converts structs from the host to the form that this plugin was built with. Members that this
// plugin does not know must be 0. Otherwise the request is rejected as BITNET_UNSUPPORTED and no
// part of it is executed (base.h, Unknown).

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "bitnet/sdk/guard.hpp"

namespace bitnet::sdk {

inline constexpr uint32_t most_struct_bytes = 4096;

inline bool is_zero(const void* data, uint64_t from, uint64_t to) noexcept {
  const auto* bytes = static_cast<const uint8_t*>(data);
  return from >= to || std::all_of(bytes + from, bytes + to, [](uint8_t b) { return b == 0; });
}

// Copies a struct; the sender must know at least its first `least` bytes.
template <class Struct>
bitnet_status receive(const Struct* from, uint64_t least, Struct& out, const char* what,
                      const reporter& report) noexcept {
  if (!from) return report.fail(BITNET_INVALID_ARGUMENT, "%s: expected a struct; found NULL", what);
  if (from->struct_size < least || from->struct_size > most_struct_bytes)
    return report.fail(
        BITNET_INVALID_ARGUMENT, "%s: expected a struct of %llu to %u bytes; found %u bytes", what,
        static_cast<unsigned long long>(least), most_struct_bytes, from->struct_size);
  if (!is_zero(from, sizeof out, from->struct_size))
    return report.fail(BITNET_UNSUPPORTED,
                       "the %s sets a member that this backend does not know; update the backend",
                       what);
  out = {};
  std::memcpy(&out, from, std::min<uint64_t>(from->struct_size, sizeof out));
  out.struct_size = sizeof out;
  return BITNET_OK;
}

// Copies n structs of `size` bytes each; all members are required.
template <class Struct>
bitnet_status receive_array(const Struct* from, uint32_t size, uint32_t n, std::vector<Struct>& out,
                            const char* what, const reporter& report) {
  if (n != 0 && !from)
    return report.fail(BITNET_INVALID_ARGUMENT, "expected %u structs (%s); found NULL", n, what);
  if (n != 0 && (size < sizeof(Struct) || size > most_struct_bytes))
    return report.fail(BITNET_INVALID_ARGUMENT,
                       "expected structs (%s) of %zu to %llu bytes; found %u bytes", what,
                       sizeof(Struct), static_cast<unsigned long long>(most_struct_bytes), size);
  out.resize(n);
  const auto* at = reinterpret_cast<const uint8_t*>(from);
  for (uint32_t i = 0; i < n; ++i, at += size) {
    if (!is_zero(at, sizeof(Struct), size))
      return report.fail(BITNET_UNSUPPORTED,
                         "%s %u sets a member that this backend does not know; update the backend",
                         what, i);
    std::memcpy(&out[i], at, sizeof(Struct));
  }
  return BITNET_OK;
}

// True if every flag that must be understood is known.
inline bool understood(uint32_t flags, uint32_t known) noexcept {
  return (flags & BITNET_FLAGS_MUST_UNDERSTAND & ~known) == 0;
}

}  // namespace bitnet::sdk
