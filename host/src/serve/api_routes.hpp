#pragma once
// The routes of other APIs than OpenAI's chats and completions, and the counts of prompts.

#include "http/routes.hpp"
#include "serve/serve_routes.hpp"

namespace bitnet::host {

void add_responses(http::route_table& to, const served& with);
void add_messages(http::route_table& to, const served& with);
// Tokens of the prompts of chats, as llama-server has it.
void add_chat_count(http::route_table& to, const served& with);

}  // namespace bitnet::host
