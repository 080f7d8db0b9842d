#pragma once
// GET /metrics: the engine's counts, what computes, and what the process takes.

#include "serve/serve_routes.hpp"

namespace bitnet::host {

// `with` outlives the table.
void add_metrics(http::route_table& to, const served& with);

}  // namespace bitnet::host
