#pragma once
// str.replace, for the method and the filter.

#include <string_view>

#include "jinja/rendering.hpp"

namespace bitnet::jinja {

[[nodiscard]] value replaced(rendering& at, std::string_view text, std::string_view old,
                             std::string_view by, int64_t most);  // negative: all

}  // namespace bitnet::jinja
