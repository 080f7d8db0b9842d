#pragma once
// The counters of kernels as reports and receipts have them.

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "engine/device_use.hpp"

namespace bitnet::api {

// A row for each kernel of each device: {id, op, backend, device, format?, level?, precision?,
// calls, time_ns?, bytes?}. What the device did not list of a kernel is left out.
nlohmann::ordered_json kernels_json(const std::vector<engine::device_use>& ran);

}  // namespace bitnet::api
