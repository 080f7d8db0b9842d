#pragma once
// Writes the answer of Anthropic's Messages API: one message, or events in the order that
// Anthropic's SDK expects.
//
//   message_start, ping
//   for each block: content_block_start, its content_block_delta, content_block_stop
//   message_delta with stop_reason and usage, message_stop

#include "openai/api_form.hpp"

namespace bitnet::host::anthropic {

[[nodiscard]] const openai::api_form& form();
// The form of /v1/messages/count_tokens, which generates nothing.
[[nodiscard]] const openai::api_form& count_form();

// {"type": "error", "error": {"type", "message"}}
[[nodiscard]] nlohmann::ordered_json error_body(const openai::api_error& why);
// The same body with the request's id, for answers that consist of the error alone.
[[nodiscard]] nlohmann::ordered_json error_body(const openai::api_error& why,
                                                std::string_view request_id);
// The error type that belongs to an HTTP status.
[[nodiscard]] const char* error_type(int status);

}  // namespace bitnet::host::anthropic
