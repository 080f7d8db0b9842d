#pragma once
// str.replace, for the method and the filter.

#include <string_view>

#include "jinja/rendering.hpp"

namespace bitnet::jinja {

[[nodiscard]] value replaced(rendering& at, const marked_text& text, std::string_view old,
                             const marked_text& by, int64_t most);  // negative: all

}  // namespace bitnet::jinja
