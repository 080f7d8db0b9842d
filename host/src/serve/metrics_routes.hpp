#pragma once
// GET /metrics: counts of the engine, the running backend, and resources of the process.

#include "serve/serve_routes.hpp"

namespace bitnet::host {

// `with` outlives the table.
void add_metrics(http::route_table& to, const served& with);

}  // namespace bitnet::host
