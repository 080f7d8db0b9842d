#pragma once
// /backends: the requested, detected and selected backends, and what runs now. A reload needs an
// admin key.

#include <nlohmann/json_fwd.hpp>

#include "http/routes.hpp"
#include "serve/serve_routes.hpp"

namespace bitnet::host {

// Extracts from a scheduler's report what computes now.
[[nodiscard]] nlohmann::ordered_json live_json(const nlohmann::json& report);

void add_backends(http::route_table& to, const served& with);

}  // namespace bitnet::host
