#pragma once
// The status of a device as JSON for reports.

#include <nlohmann/json_fwd.hpp>

#include "compute/device.hpp"

namespace bitnet::select {

// Members that the device does not report are absent; null if it reports none. An invalid status is
// {"refused": why}. `asked`: "now", or "probe" with age_s.
[[nodiscard]] nlohmann::ordered_json asked_now(const compute::activity& a);
[[nodiscard]] nlohmann::ordered_json asked_by_probe(const compute::activity& a, int64_t age_s);

}  // namespace bitnet::select
