#pragma once
// The messages of an Anthropic body as those of a chat.

#include <string>
#include <string_view>

#include "openai/body.hpp"

namespace bitnet::host::anthropic {

// `system` and `messages` of the body that `in` reads, whose text is `body`, as the JSON text that
// bitnet_chat_open reads. An error is kept in `in`. Claude Code begins a system prompt with a line
// `x-anthropic-billing-header: ...` that differs from request to request, and is not meant for the
// model: without `keeps_header` it is left out, so that the rest is known from the request before.
[[nodiscard]] std::string messages_of(openai::field_reader& in, std::string_view body,
                                      bool keeps_header);

}  // namespace bitnet::host::anthropic
