#pragma once
// Reads members of untrusted JSON objects: a missing member, or one of another type, reads as
// absent.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "text/zero_bytes.hpp"

namespace bitnet::text {

// Returns a discarded value if `text` is no JSON.
[[nodiscard]] inline nlohmann::json json_of(std::string_view text) {
  if (zero_byte(text)) return nlohmann::json(nlohmann::json::value_t::discarded);
  return nlohmann::json::parse(text, nullptr, false);
}

// Returns null if `object` is no object, or has no such member.
[[nodiscard]] inline const nlohmann::json& at(const nlohmann::json& object, const char* key) {
  static const nlohmann::json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

// Returns "" if the member is no text.
[[nodiscard]] inline std::string text_at(const nlohmann::json& object, const char* key) {
  const nlohmann::json& x = at(object, key);
  return x.is_string() ? x.get<std::string>() : "";
}

[[nodiscard]] inline bool true_at(const nlohmann::json& object, const char* key) {
  const nlohmann::json& x = at(object, key);
  return x.is_boolean() && x.get<bool>();
}

[[nodiscard]] inline bool false_at(const nlohmann::json& object, const char* key) {
  const nlohmann::json& x = at(object, key);
  return x.is_boolean() && !x.get<bool>();
}

}  // namespace bitnet::text
