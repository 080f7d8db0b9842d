#pragma once
// The slots of bitnet_backend_v0 in order; the only list outside the ABI header.

#include <array>
#include <cstddef>
#include <string_view>

#include "bitnet/abi/backend.h"

// clang-format off: a list, not a statement
#define BITNET_REQUIRED_SLOTS(X) \
  X(info) X(close) X(device_count) X(device_info) X(kernels) X(device_open) X(device_close) \
  X(buffer_create) X(buffer_map) X(buffer_destroy) X(weight_plan) X(weights_create) \
  X(weight_write) X(weight_alias) X(weight_seal) X(weights_destroy) X(graph_query) \
  X(program_build) X(program_bind) X(binding_prepare) X(binding_destroy) X(program_stats) \
  X(program_destroy) X(kv_pool_create) X(kv_copy) X(kv_export) X(kv_import) \
  X(kv_pool_destroy) X(queue_create) X(queue_submit) X(queue_wait) X(queue_poll) \
  X(queue_destroy) X(quiesce)
// clang-format on

namespace bitnet::plugin {

struct slot {
  std::string_view name;
  std::size_t offset;
};

#define BITNET_SLOT_ROW(name) slot{#name, offsetof(bitnet_backend_v0, name)},
constexpr auto required_slots = std::to_array<slot>({BITNET_REQUIRED_SLOTS(BITNET_SLOT_ROW)});
#undef BITNET_SLOT_ROW

// Bytes that every plugin must fill: up to the first optional slot.
constexpr std::size_t required_bytes = offsetof(bitnet_backend_v0, query_interface);

static_assert(required_slots.front().offset + required_slots.size() * sizeof(void*) ==
                  required_bytes,
              "a slot of the ABI header is not in the list");

}  // namespace bitnet::plugin
