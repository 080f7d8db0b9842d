#include "library/json.hpp"

#include <nlohmann/json.hpp>

namespace bitnet::host {
namespace {

using nlohmann::json;

const json* find(const json& from, const char* key) {
  if (!from.is_object()) return nullptr;
  const auto at = from.find(key);
  return at == from.end() ? nullptr : &*at;
}

}  // namespace

std::string json_text(const json& content) {
  return content.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string member(const json& from, const char* key) {
  const json* found = find(from, key);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

std::string any_member(const json& from, const char* key) {
  const json* found = find(from, key);
  if (found == nullptr || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : json_text(*found);
}

json list_of(const json& from, const char* key) {
  const json* found = find(from, key);
  return found != nullptr && found->is_array() ? *found : json::array();
}

std::string json_line(const json& content) {
  return json_text(content) + "\n";
}

result<json> parse_json(const std::string& text) {
  json content = json::parse(text, nullptr, false);
  if (content.is_discarded()) return fail(exit_code::failure, "libbitnet gave malformed JSON");
  return content;
}

}  // namespace bitnet::host
