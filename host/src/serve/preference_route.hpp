#pragma once
// POST /backends/prefer: an administrator changes the device that computes.

#include "http/routes.hpp"
#include "serve/serve_routes.hpp"

namespace bitnet::host {

// `with` outlives the table.
void add_preference(http::route_table& to, const served& with);

}  // namespace bitnet::host
