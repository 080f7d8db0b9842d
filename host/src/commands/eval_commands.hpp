#pragma once
// The measures of `bitnet eval`, one function for each. `wanted` as in find_model.

#include <nlohmann/json.hpp>
#include <string>

#include "session/engine.hpp"

namespace bitnet::host {

[[nodiscard]] result<int> eval_ppl(const invocation& in, const std::string& wanted);
[[nodiscard]] result<int> eval_kld(const invocation& in, const std::string& wanted);
[[nodiscard]] result<int> eval_choice(const invocation& in, const std::string& wanted);

// The first members of each JSON result: the measure, the model, and the device.
[[nodiscard]] nlohmann::ordered_json eval_report(const char* measure, const std::string& file,
                                                 bitnet_runtime* runtime,
                                                 const bitnet_model* model);
// A result as one line; bytes that are not UTF-8, as a model's name may have, become U+FFFD.
[[nodiscard]] std::string eval_line(const nlohmann::ordered_json& content);

}  // namespace bitnet::host
