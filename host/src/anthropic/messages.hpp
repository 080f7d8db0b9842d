#pragma once
// The messages of an Anthropic body as those of a chat.

#include <string>
#include <string_view>

#include "openai/body.hpp"
#include "openai/generation_fields.hpp"

namespace bitnet::host::anthropic {

// `system` and `messages` of the body that `in` reads, whose text is `body`, as the JSON text that
// bitnet_chat_open reads. An error is kept in `in`. `how` says what becomes of some lines of the
// system prompt: openai/system_lines.hpp.
[[nodiscard]] std::string messages_of(openai::field_reader& in, std::string_view body,
                                      const openai::generation_wish& how);

}  // namespace bitnet::host::anthropic
