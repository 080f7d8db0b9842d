#pragma once
// GET /slots: running and queued requests in llama-server's form, without prompts and texts.

#include "http/routes.hpp"
#include "serve/serve_routes.hpp"

namespace bitnet::host {

// `with` outlives the table.
void add_slots(http::route_table& to, const served& with);

}  // namespace bitnet::host
