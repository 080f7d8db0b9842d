#pragma once
// What a device says that it is doing, as reports have it.

#include <nlohmann/json_fwd.hpp>

#include "compute/device.hpp"

namespace bitnet::select {

// Members that the device did not report are left out; null if it reports none. A refused status is
// {"refused": why}. `asked` says when: "now", or "probe" with age_s.
[[nodiscard]] nlohmann::ordered_json asked_now(const compute::activity& a);
[[nodiscard]] nlohmann::ordered_json asked_by_probe(const compute::activity& a, int64_t age_s);

}  // namespace bitnet::select
