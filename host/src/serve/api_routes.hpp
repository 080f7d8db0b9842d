#pragma once
// Routes of other APIs than OpenAI's chats and completions, and routes that count prompt tokens.

#include "http/routes.hpp"
#include "serve/serve_routes.hpp"

namespace bitnet::host {

void add_responses(http::route_table& to, const served& with);
void add_messages(http::route_table& to, const served& with);
// Counts the prompt tokens of chats, as llama-server does.
void add_chat_count(http::route_table& to, const served& with);

}  // namespace bitnet::host
