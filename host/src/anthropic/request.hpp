#pragma once
// A body of Anthropic's Messages API as a chat.

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "openai/request.hpp"

namespace bitnet::host::anthropic {

// As openai::parse_request. Tools that Anthropic's servers run are left out, and `ignored_tools` of
// the answer lists them.
[[nodiscard]] openai::parsed<openai::request> parse_request(
    const nlohmann::json& body, std::string_view text, const openai::model_limits& model,
    const openai::generation_wish& defaults);
// The same without max_tokens, for a count of the prompt's tokens.
[[nodiscard]] openai::parsed<openai::request> parse_count(const nlohmann::json& body,
                                                          std::string_view text,
                                                          const openai::model_limits& model,
                                                          const openai::generation_wish& defaults);

}  // namespace bitnet::host::anthropic
