#pragma once
// /backends: what was requested, detected and selected, and what runs now; and a reload, for which
// an admin key is needed.

#include "http/routes.hpp"
#include "serve/serve_routes.hpp"

namespace bitnet::host {

void add_backends(http::route_table& to, const served& with);

}  // namespace bitnet::host
