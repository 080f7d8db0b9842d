#pragma once
// Changes of a whole text that are methods as well as filters.

#include <optional>
#include <string>
#include <string_view>

#include "jinja/python_text.hpp"
#include "jinja/rendering.hpp"

namespace bitnet::jinja {

[[nodiscard]] value replaced(rendering& at, const marked_text& text, std::string_view old,
                             const marked_text& by, int64_t most);  // negative: all

// Without the characters at its ends: those of `characters`, or white space.
[[nodiscard]] value without_ends(rendering& at, const marked_text& whole, side where,
                                 std::optional<std::string_view> characters);

// By a function of python_text.hpp that changes letters.
[[nodiscard]] value changed(rendering& at, const marked_text& text,
                            std::string (*change)(std::string_view));

}  // namespace bitnet::jinja
