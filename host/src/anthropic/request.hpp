#pragma once
// Reads a body of Anthropic's Messages API as a chat.

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "openai/request.hpp"

namespace bitnet::host::anthropic {

// Like openai::parse_request. Tools that Anthropic's servers run are left out; the answer's member
// `ignored_tools` lists them.
[[nodiscard]] openai::parsed<openai::request> parse_request(
    const nlohmann::json& body, std::string_view text, const openai::model_limits& model,
    const openai::generation_wish& defaults);
// Like parse_request, but max_tokens may be absent: only the prompt's tokens are counted.
[[nodiscard]] openai::parsed<openai::request> parse_count(const nlohmann::json& body,
                                                          std::string_view text,
                                                          const openai::model_limits& model,
                                                          const openai::generation_wish& defaults);

}  // namespace bitnet::host::anthropic
