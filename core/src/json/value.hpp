#pragma once
// Declares JSON values for headers that need no more.

#include <nlohmann/json_fwd.hpp>

namespace bitnet::json {

// Keeps the order of members, since templates write them out.
using value = nlohmann::ordered_json;

}  // namespace bitnet::json
