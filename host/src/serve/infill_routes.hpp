#pragma once
// llama-server's /infill, which fills a gap in a text.

#include "http/routes.hpp"
#include "serve/serve_routes.hpp"

namespace bitnet::host {

void add_infill(http::route_table& to, const served& with);

}  // namespace bitnet::host
