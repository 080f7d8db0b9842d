#pragma once
// Changes of a text that exist as methods and as filters.

#include <optional>
#include <string>
#include <string_view>

#include "jinja/python_text.hpp"
#include "jinja/rendering.hpp"

namespace bitnet::jinja {

[[nodiscard]] value replaced(rendering& at, const marked_text& text, std::string_view old,
                             const marked_text& by, int64_t most);  // negative: all

// Strips `characters`, or white space, from its ends.
[[nodiscard]] value without_ends(rendering& at, const marked_text& whole, side where,
                                 std::optional<std::string_view> characters);

// Applies a function of python_text.hpp that changes letters.
[[nodiscard]] value changed(rendering& at, const marked_text& text,
                            std::string (*change)(std::string_view));

}  // namespace bitnet::jinja
