#include "basic/json.hpp"

#include <nlohmann/json.hpp>

#include "text/json_members.hpp"

namespace bitnet::host {

using nlohmann::json;

std::string json_text(const json& content) {
  return content.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string member(const json& from, const char* key) {
  return text::text_at(from, key);
}

std::string any_member(const json& from, const char* key) {
  const json& found = text::at(from, key);
  if (found.is_null()) return "";
  return found.is_string() ? found.get<std::string>() : json_text(found);
}

json list_of(const json& from, const char* key) {
  const json& found = text::at(from, key);
  return found.is_array() ? found : json::array();
}

std::string json_line(const json& content) {
  return json_text(content) + "\n";
}

result<json> parse_json(const std::string& text) {
  json content = text::json_of(text);
  if (content.is_discarded()) return fail(exit_code::failure, "libbitnet gave malformed JSON");
  return content;
}

}  // namespace bitnet::host
