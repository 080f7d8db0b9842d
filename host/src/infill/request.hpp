#pragma once
// A body of llama-server's /infill as the completion that it means.

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "openai/request.hpp"

namespace bitnet::host::infill {

// As openai::parse_request. {"input_prefix", "input_suffix", "input_extra": [{"filename", "text"}],
// "prompt"}, with the members of generations; `prompt` is what stands behind `input_prefix`.
[[nodiscard]] openai::parsed<openai::request> parse_request(
    const nlohmann::json& body, std::string_view text, const openai::model_limits& model,
    const openai::generation_wish& defaults);

}  // namespace bitnet::host::infill
