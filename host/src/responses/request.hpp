#pragma once
// Reads a body of OpenAI's Responses API as a chat.

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "openai/request.hpp"

namespace bitnet::host::responses {

// Like openai::parse_request. The server stores no responses, so members that need an earlier one
// are rejected. Tools that are not functions are left out; the answer's member `ignored_tools`
// lists them.
[[nodiscard]] openai::parsed<openai::request> parse_request(
    const nlohmann::json& body, std::string_view text, const openai::model_limits& model,
    const openai::generation_wish& defaults);

}  // namespace bitnet::host::responses
