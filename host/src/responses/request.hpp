#pragma once
// A body of OpenAI's Responses API as a chat.

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "openai/request.hpp"

namespace bitnet::host::responses {

// As openai::parse_request. Nothing is kept of a response, so members that need an earlier one are
// rejected. Tools that are no functions are left out, and `ignored_tools` of the answer lists them.
[[nodiscard]] openai::parsed<openai::request> parse_request(
    const nlohmann::json& body, std::string_view text, const openai::model_limits& model,
    const openai::generation_wish& defaults);

}  // namespace bitnet::host::responses
