#pragma once
// Patterns for the formats of strings that JSON Schema names.

#include <string_view>

namespace bitnet::schema {

// The pattern that matches a text of the format as a whole; "" if the format is not supported.
[[nodiscard]] std::string_view pattern_of_format(std::string_view name);
[[nodiscard]] std::string_view format_names();  // of the supported ones, for messages

}  // namespace bitnet::schema
