#pragma once
// The messages of an Anthropic body as those of a chat.

#include <string>
#include <string_view>

#include "openai/body.hpp"

namespace bitnet::host::anthropic {

// `system` and `messages` of the body that `in` reads, whose text is `body`, as the JSON text that
// bitnet_chat_open reads. An error is kept in `in`.
[[nodiscard]] std::string messages_of(openai::field_reader& in, std::string_view body);

}  // namespace bitnet::host::anthropic
