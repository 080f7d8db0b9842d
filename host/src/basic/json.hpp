#pragma once
// Reads JSON of the library or of a backend's tools without trusting its contents.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "basic/result.hpp"

namespace bitnet::host {

// Member of an object as a string; "" if it is missing or no string.
[[nodiscard]] std::string member(const nlohmann::json& from, const char* key);
// Member of any type as text; "" if it is missing or null.
[[nodiscard]] std::string any_member(const nlohmann::json& from, const char* key);
// Member that is a list; [] if there is none.
[[nodiscard]] nlohmann::json list_of(const nlohmann::json& from, const char* key);

// JSON without a newline; bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string json_text(const nlohmann::json& content);
// The same with a newline.
[[nodiscard]] std::string json_line(const nlohmann::json& content);
// Parses JSON of the library; invalid JSON is the library's bug and exit code 1.
[[nodiscard]] result<nlohmann::json> parse_json(const std::string& text);

}  // namespace bitnet::host
