#pragma once
// The browser page at "/", and its files at "/page/".

#include "http/routes.hpp"
#include "serve/serve_routes.hpp"

namespace bitnet::host {

// Adds nothing if `with` has no page. The page itself needs no key; the routes that it calls ask
// for one.
void add_page(http::route_table& to, const served& with);

}  // namespace bitnet::host
