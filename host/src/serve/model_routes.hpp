#pragma once
// /v1/models lists the server's models; administrators can load and unload them.

#include "http/routes.hpp"
#include "serve/serve_routes.hpp"

namespace bitnet::host {

void add_models(http::route_table& to, const served& with);

}  // namespace bitnet::host
