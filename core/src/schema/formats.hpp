#pragma once
// The texts of the formats that JSON Schema names.

#include <string_view>

namespace bitnet::schema {

// A pattern that the whole text is; "" for a format that is not supported.
[[nodiscard]] std::string_view pattern_of_format(std::string_view name);
[[nodiscard]] std::string_view format_names();  // of the supported ones, for messages

}  // namespace bitnet::schema
