#pragma once
// /backends: what was requested, detected and selected, and what runs now; and a reload, for which
// an admin key is needed.

#include <nlohmann/json_fwd.hpp>

#include "http/routes.hpp"
#include "serve/serve_routes.hpp"

namespace bitnet::host {

// What computes now, of the report of a scheduler.
[[nodiscard]] nlohmann::ordered_json live_json(const nlohmann::json& report);

void add_backends(http::route_table& to, const served& with);

}  // namespace bitnet::host
