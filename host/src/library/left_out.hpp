#pragma once
// Parts of a model's folder that the program does not use, besides the tensors.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace bitnet::host {

// A line per element of [{file, member?, why}].
[[nodiscard]] std::string left_out_text(const nlohmann::json& members, std::string_view indent);

}  // namespace bitnet::host
