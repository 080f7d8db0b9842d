#pragma once
// Converts the input of a Responses body to the messages of a chat.

#include <nlohmann/json.hpp>

#include "openai/body.hpp"

namespace bitnet::host::responses {

// Converts `instructions` and `input` of the body to messages in the form that bitnet_chat_open
// reads. An error is kept in `in`.
[[nodiscard]] nlohmann::json messages_of(openai::field_reader& in);

}  // namespace bitnet::host::responses
