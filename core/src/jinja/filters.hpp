#pragma once
// The filters, which stand behind |.

#include <string>
#include <vector>

#include "jinja/rendering.hpp"

namespace bitnet::jinja {

[[nodiscard]] value filtered(rendering& at, const std::string& name, const value& v,
                             arguments& given);

[[nodiscard]] std::vector<std::string> filter_names();

}  // namespace bitnet::jinja
