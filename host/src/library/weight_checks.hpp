#pragma once
// What the library says of the weights of a model file: bitnet_inspect_weights.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bitnet/bitnet.h"
#include "result.hpp"

namespace bitnet::host {

// {rules, checked, suspicious, tensors[...]} of bitnet.h. `rules` as there.
[[nodiscard]] result<nlohmann::json> checked_weights(const std::string& file,
                                                     const bitnet_model_options& options,
                                                     const std::string& rules);

[[nodiscard]] bool has_suspicious(const nlohmann::json& weights);

// A line for each weight, or only for the suspicious ones, with the reasons below.
[[nodiscard]] std::string weights_text(const nlohmann::json& weights, bool all);

}  // namespace bitnet::host
