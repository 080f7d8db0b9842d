// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// The optional interfaces of tier 0: second forms of weights (bitnet/abi/packed.h) and measured
// settings (bitnet/abi/tuning.h). A backend has them if its author filled them in.

#include <algorithm>
#include <cstring>
#include <string>

#include "bitnet/abi/packed.h"
#include "bitnet/abi/tuning.h"
#include "bitnet/sdk/interpreter/objects.hpp"
#include "bitnet/sdk/table.hpp"

namespace bitnet::sdk::interpreter {

using backends = handle<bitnet_backend, backend>;
using devices = handle<bitnet_device, device>;
using weight_sets = handle<bitnet_weights, weight_set>;

inline bitnet_status packed_describe(bitnet_weights* weights, uint32_t index,
                                     bitnet_packed_info* out, bitnet_error* err) {
  return guarded(err, "packed describe", [&](const reporter& report) {
    if (!out) return report.fail(BITNET_INVALID_ARGUMENT, "out is NULL");
    bitnet_packed_info answer{};
    if (bitnet_status s = weight_sets::get(weights)->describe_packed(index, answer, report);
        failed(s))
      return s;
    answer.struct_size = sizeof answer;
    hand_over(answer, out);
    return BITNET_OK;
  });
}

inline bitnet_status packed_pack(bitnet_weights* weights, uint32_t index, const void** out,
                                 bitnet_error* err) {
  return guarded(err, "packed pack", [&](const reporter& report) {
    if (!out) return report.fail(BITNET_INVALID_ARGUMENT, "out is NULL");
    return weight_sets::get(weights)->pack(index, out, report);
  });
}

inline bitnet_status packed_adopt(bitnet_weights* weights, uint32_t index, const void* data,
                                  uint64_t bytes, bitnet_error* err) {
  return guarded(err, "packed adopt", [&](const reporter& report) {
    return weight_sets::get(weights)->adopt_packed(index, data, bytes, report);
  });
}

inline constexpr bitnet_packed_weights_v1 packed_weights{
    {sizeof(bitnet_packed_weights_v1), 1}, packed_describe, packed_pack, packed_adopt};

inline bitnet_status tuning_describe(bitnet_device* device, char* out, uint64_t capacity,
                                     bitnet_error* err) {
  return guarded(err, "tuning describe", [&](const reporter& report) {
    const std::string text = devices::get(device)->author().tuning.describe();
    if (!out || capacity <= text.size())
      return report.fail(BITNET_INVALID_ARGUMENT,
                         "the settings need %zu bytes; found room for %llu", text.size() + 1,
                         static_cast<unsigned long long>(out ? capacity : 0));
    std::memcpy(out, text.c_str(), text.size() + 1);
    return BITNET_OK;
  });
}

inline bitnet_status tuning_measure(bitnet_device* device, uint64_t budget_ns,
                                    uint64_t cancel_token, bitnet_error* err) {
  return guarded(err, "tuning measure", [&](const reporter& report) {
    const interpreter::device& d = *devices::get(device);
    const tunable& tuned = d.author().tuning;
    if (d.services().cancelled(cancel_token))
      return report.fail(BITNET_CANCELLED, "the caller cancelled the measurement of settings");
    const std::string before = tuned.describe();
    const std::string doubt =
        tuned.measure(d.author().author_data, d.services(), budget_ns, cancel_token);
    if (d.services().cancelled(cancel_token)) {
      tuned.adopt(before);
      return report.fail(BITNET_CANCELLED, "the caller cancelled the measurement of settings");
    }
    if (doubt.empty()) return BITNET_OK;
    return report.fail(BITNET_UNAVAILABLE, "%s", doubt.c_str());
  });
}

inline bitnet_status tuning_adopt(bitnet_device* device, bitnet_str settings, bitnet_error* err) {
  return guarded(err, "tuning adopt", [&](const reporter& report) {
    const tunable& tuned = devices::get(device)->author().tuning;
    if (!tuned.adopt(to_view(settings)))
      return report.fail(
          BITNET_INVALID_ARGUMENT,
          "settings '%.*s' were not made by this version of the backend; measure again",
          static_cast<int>(std::min<uint64_t>(settings.size, 128)),
          settings.data ? settings.data : "");
    if (!tuned.due || !tuned.due()) return BITNET_OK;
    return report.fail(BITNET_UNAVAILABLE, "the last measurement was not reliable; measure again");
  });
}

inline constexpr bitnet_tuning_v1 tuning{
    {sizeof(bitnet_tuning_v1), 1}, tuning_describe, tuning_measure, tuning_adopt};

// True if the backend has forms that the host can keep. Forms that replace the rows do not count.
inline bool has_second_forms(const definition& author) noexcept {
  const auto packs = [](const auto& row) { return row.packing.bytes && !row.packing.drops_rows; };
  return author.packing.bytes || std::ranges::any_of(author.primitives, packs) ||
         std::ranges::any_of(author.composites, packs);
}

inline const bitnet_interface_header* query_interface(bitnet_backend* self, bitnet_str name,
                                                      uint32_t min_version) {
  if (min_version > 1) return nullptr;
  const definition& author = backends::get(self)->author;
  if (to_view(name) == BITNET_INTERFACE_PACKED_WEIGHTS && has_second_forms(author))
    return &packed_weights.header;
  if (to_view(name) == BITNET_INTERFACE_TUNING && author.tuning.describe) return &tuning.header;
  return nullptr;
}

}  // namespace bitnet::sdk::interpreter
