#pragma once
// Counters of kernels as JSON, for reports and receipts.

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "engine/device_use.hpp"

namespace bitnet::api {

// One row per kernel and device: {id, op, backend, device, format?, level?, precision?, calls,
// time_ns?, bytes?}. A member that the device does not report is absent.
nlohmann::ordered_json kernels_json(const std::vector<engine::device_use>& ran);

}  // namespace bitnet::api
