#pragma once
// The answer of Anthropic's Messages API: a message whole, or events in the order that Anthropic's
// SDK expects.
//
//   message_start, ping
//   for each block: content_block_start, its content_block_delta, content_block_stop
//   message_delta with stop_reason and usage, message_stop

#include "openai/api_form.hpp"

namespace bitnet::host::anthropic {

[[nodiscard]] const openai::api_form& form();
// Of /v1/messages/count_tokens, which generates nothing.
[[nodiscard]] const openai::api_form& count_form();

// {"type": "error", "error": {"type", "message"}}
[[nodiscard]] nlohmann::ordered_json error_body(const openai::api_error& why);
// The same with the id of the request, for answers that are nothing but the error.
[[nodiscard]] nlohmann::ordered_json error_body(const openai::api_error& why,
                                                std::string_view request_id);
// The type of an error of this status.
[[nodiscard]] const char* error_type(int status);

}  // namespace bitnet::host::anthropic
