#pragma once
// Reads a body of llama-server's /infill as a completion.

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "openai/request.hpp"

namespace bitnet::host::infill {

// Like openai::parse_request, for {"input_prefix", "input_suffix", "input_extra": [{"filename",
// "text"}], "prompt"} and the generation members. `prompt` is appended to `input_prefix`.
[[nodiscard]] openai::parsed<openai::request> parse_request(
    const nlohmann::json& body, std::string_view text, const openai::model_limits& model,
    const openai::generation_wish& defaults);

}  // namespace bitnet::host::infill
