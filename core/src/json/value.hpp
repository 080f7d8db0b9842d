#pragma once
// JSON values, for headers that only name them.

#include <nlohmann/json_fwd.hpp>

namespace bitnet::json {

// Keeps the order of members, which templates write out.
using value = nlohmann::ordered_json;

}  // namespace bitnet::json
