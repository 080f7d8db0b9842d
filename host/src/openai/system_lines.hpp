#pragma once
// Handles volatile lines that agents write into a system prompt. When such a line changes,
// everything after it must be computed anew, so it is dropped or moved to the end.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "openai/generation_fields.hpp"

namespace bitnet::host::openai {

// Whether the line is only a date or time, in a form that docs/how-to/coding-agents.md lists.
[[nodiscard]] bool is_date_line(std::string_view line);

// `content` of a system prompt: a text, or parts, of which those with a member `text` count. Drops
// a first line `x-anthropic-billing-header: ...` unless how.keeps_billing_header. Moves date lines
// to the end if how.moves_date_lines. Drops parts that become empty, possibly all. Returns false if
// nothing changed.
[[nodiscard]] bool settle_system(nlohmann::json& content, const generation_wish& how);

// The same for the leading messages of a chat with the role system or developer. A message that
// becomes empty is dropped.
void settle_messages(nlohmann::json& messages, const generation_wish& how);
// `messages`: raw text of a JSON array. Unchanged parts keep their text.
[[nodiscard]] std::string settled_messages(std::string_view messages, const generation_wish& how);

}  // namespace bitnet::host::openai
