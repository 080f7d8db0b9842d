#pragma once
// /v1/models: the models that the server can load; and, for administrators, loading and unloading.

#include "http/routes.hpp"
#include "serve/serve_routes.hpp"

namespace bitnet::host {

void add_models(http::route_table& to, const served& with);

}  // namespace bitnet::host
