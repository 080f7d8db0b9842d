// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// The entry call: agrees on a minor and fills the host's table, up to the size that the host knows.

#include <algorithm>
#include <cstring>

#include "bitnet/abi/backend.h"
#include "bitnet/sdk/guard.hpp"
#include "bitnet/sdk/host.hpp"

namespace bitnet::sdk {

// The minors of major 0 that a plugin speaks, as in its note and its manifest. The default is all
// that this SDK serves.
struct minors {
  uint32_t oldest = BITNET_ABI_OLDEST_MINOR;
  uint32_t newest = BITNET_ABI_MINOR;
};

// `slots` is the plugin's whole table; its head is filled in here. Slots that the host does not
// know are dropped; slots that the plugin leaves NULL stay NULL. BITNET_INCOMPATIBLE, with
// need_minor_* filled, if the ranges do not overlap.
inline bitnet_status fill_table(const bitnet_host_v0* host_services,
                                const bitnet_open_request* request, bitnet_backend_v0* out,
                                bitnet_backend_v0 slots, minors spoken,
                                const reporter& report) noexcept {
  // A host whose table lacks `close` could never end what this call opens.
  constexpr uint32_t least = offsetof(bitnet_backend_v0, device_count);
  if (!out || out->struct_size < least)
    return report.fail(BITNET_INVALID_ARGUMENT,
                       "the host's table has %u bytes, %u are needed; update the host",
                       out ? out->struct_size : 0, least);
  out->need_minor_min = spoken.oldest;
  out->need_minor_max = spoken.newest;
  // NOLINTNEXTLINE(bugprone-sizeof-expression): the size of a pointer is what is meant
  if (!request || !BITNET_HAS_FIELD(request, bitnet_open_request, params))
    return report.fail(BITNET_INVALID_ARGUMENT,
                       "the open request is missing, or has no member params; update the host");
  if (!host::complete(host_services))
    return report.fail(BITNET_INVALID_ARGUMENT,
                       "the host lacks a service: log, parallel_width, parallel_run, cancelled and "
                       "now_ns are required; update the host");
  if (request->n_params != 0 && !request->params)
    return report.fail(BITNET_INVALID_ARGUMENT, "expected a list of %u parameters; found NULL",
                       request->n_params);
  const uint32_t lowest = std::max(request->abi_minor_min, spoken.oldest);
  const uint32_t highest = std::min(request->abi_minor_max, spoken.newest);
  if (lowest > highest)
    return report.fail(
        BITNET_INCOMPATIBLE,
        "this backend speaks ABI %u.%u to %u.%u, the host %u.%u to %u.%u: update the "
        "older of the two",
        BITNET_ABI_MAJOR, spoken.oldest, BITNET_ABI_MAJOR, spoken.newest, BITNET_ABI_MAJOR,
        request->abi_minor_min, BITNET_ABI_MAJOR, request->abi_minor_max);
  const uint32_t room = out->struct_size;
  const uint32_t filled = std::min<uint32_t>(room, sizeof slots);
  slots.struct_size = room;
  slots.filled_size = filled;
  slots.abi_minor = highest;
  slots.need_minor_min = spoken.oldest;
  slots.need_minor_max = spoken.newest;
  std::memcpy(out, &slots, filled);
  return BITNET_OK;
}

// Copies a struct to a caller that may know a shorter form, and keeps the caller's struct_size.
template <class Struct>
void hand_over(const Struct& value, Struct* out) noexcept {
  const uint32_t room = out->struct_size;
  std::memcpy(out, &value, std::min<uint64_t>(room, sizeof value));
  if (room >= sizeof out->struct_size) out->struct_size = room;
}

}  // namespace bitnet::sdk
