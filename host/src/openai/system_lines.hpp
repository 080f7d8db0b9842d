#pragma once
// Lines that agents write into a system prompt and that change from request to request, or from day
// to day. What is behind such a line is computed anew when it changes.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "openai/generation_fields.hpp"

namespace bitnet::host::openai {

// Whether a line is nothing but a date or a time, in one of the ways that
// docs/how-to/coding-agents.md lists.
[[nodiscard]] bool is_date_line(std::string_view line);

// `content` of a system prompt: a text, or parts of which those with a member `text` are texts.
// Without how.keeps_billing_header, a first line `x-anthropic-billing-header: ...` is left out.
// With how.moves_date_lines, date lines go behind all others. False: nothing has changed. Parts
// that are left without text are left out; none may be left.
[[nodiscard]] bool settle_system(nlohmann::json& content, const generation_wish& how);

// The same of the messages of a chat, of the role system or developer, that are before all others.
// A message that is left without content is left out.
void settle_messages(nlohmann::json& messages, const generation_wish& how);
// `messages`: the text of a JSON array of messages. What does not change stays as it is written.
[[nodiscard]] std::string settled_messages(std::string_view messages, const generation_wish& how);

}  // namespace bitnet::host::openai
