#pragma once
// llama-server's route for what stands in a gap of a text.

#include "http/routes.hpp"
#include "serve/serve_routes.hpp"

namespace bitnet::host {

void add_infill(http::route_table& to, const served& with);

}  // namespace bitnet::host
