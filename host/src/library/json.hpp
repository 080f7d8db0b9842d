#pragma once
// JSON that the library or a backend's tools gave, read without trust in what it holds.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "result.hpp"

namespace bitnet::host {

// Members of an object: a text, "" where there is none or something else;
[[nodiscard]] std::string member(const nlohmann::json& from, const char* key);
// anything as text, "" where there is none or null;
[[nodiscard]] std::string any_member(const nlohmann::json& from, const char* key);
// a list, [] where there is none.
[[nodiscard]] nlohmann::json list_of(const nlohmann::json& from, const char* key);

// JSON without a line's end; bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string json_text(const nlohmann::json& content);
// One line of JSON; bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string json_line(const nlohmann::json& content);
// JSON that the library gave; a broken one is its bug and exit code 1.
[[nodiscard]] result<nlohmann::json> parse_json(const std::string& text);

}  // namespace bitnet::host
