#pragma once
// The page for browsers, at "/", and the files that it asks for, at "/page/".

#include "http/routes.hpp"
#include "serve/serve_routes.hpp"

namespace bitnet::host {

// Adds nothing where `with` has no page. A key is asked for behind it, by the routes that it uses.
void add_page(http::route_table& to, const served& with);

}  // namespace bitnet::host
