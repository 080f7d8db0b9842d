#pragma once
// Converts the messages of an Anthropic body into those of a chat.

#include <string>
#include <string_view>

#include "openai/body.hpp"
#include "openai/generation_fields.hpp"

namespace bitnet::host::anthropic {

// Returns the members `system` and `messages` as the JSON text that bitnet_chat_open reads. `in`
// reads the body, and `body` is its raw text. An error is kept in `in`. `how` says which lines of
// the system prompt are moved or dropped: openai/system_lines.hpp.
[[nodiscard]] std::string messages_of(openai::field_reader& in, std::string_view body,
                                      const openai::generation_wish& how);

}  // namespace bitnet::host::anthropic
