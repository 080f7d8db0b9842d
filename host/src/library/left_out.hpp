#pragma once
// What a folder with a model has beside its tensors and the program does not use.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace bitnet::host {

// A line for each of [{file, member?, why}].
[[nodiscard]] std::string left_out_text(const nlohmann::json& members, std::string_view indent);

}  // namespace bitnet::host
