#pragma once
// /props: defaults and sizes, in llama-server's form.

#include "http/routes.hpp"
#include "serve/serve_routes.hpp"

namespace bitnet::host {

// `with` outlives the table.
void add_props(http::route_table& to, const served& with);

}  // namespace bitnet::host
