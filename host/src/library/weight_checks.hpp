#pragma once
// The library's check of a model file's weights: bitnet_inspect_weights.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "basic/result.hpp"
#include "bitnet/bitnet.h"

namespace bitnet::host {

// {rules, checked, suspicious, tensors[...]} as in bitnet.h; so is `rules`.
[[nodiscard]] result<nlohmann::json> checked_weights(const std::string& file,
                                                     const bitnet_model_options& options,
                                                     const std::string& rules);

[[nodiscard]] bool has_suspicious(const nlohmann::json& weights);

// A line per weight, or per suspicious weight only, with the reasons below it.
[[nodiscard]] std::string weights_text(const nlohmann::json& weights, bool all);

}  // namespace bitnet::host
