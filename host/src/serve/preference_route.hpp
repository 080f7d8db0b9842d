#pragma once
// POST /backends/prefer: which device computes from now on, for an administrator.

#include "http/routes.hpp"
#include "serve/serve_routes.hpp"

namespace bitnet::host {

// `with` outlives the table.
void add_preference(http::route_table& to, const served& with);

}  // namespace bitnet::host
