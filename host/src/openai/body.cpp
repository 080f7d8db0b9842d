#include "openai/body.hpp"

#include <fmt/format.h>

#include <cmath>

#include "text/printable.hpp"
#include "text/zero_bytes.hpp"

namespace bitnet::host::openai {
namespace {

using nlohmann::json;

// Nesting depth of well-formed JSON; for other text it may be larger.
std::size_t depth_of(std::string_view text) {
  std::size_t depth = 0;
  std::size_t deepest = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') quoted = !quoted;
    if (quoted) {
      i += c == '\\' ? 1 : 0;  // skip an escaped character
      continue;
    }
    if (c == '[' || c == '{') deepest = std::max(deepest, ++depth);
    if ((c == ']' || c == '}') && depth > 0) --depth;
  }
  return deepest;
}

}  // namespace

parsed<json> parse_object(std::string_view text, std::string_view what) {
  if (depth_of(text) > most_depth)
    return invalid("",
                   fmt::format("{} has arrays and objects more than {} deep in each other; send a "
                               "flatter one",
                               what, most_depth),
                   "invalid_json");
  if (const auto zero = text::zero_byte(text))
    return invalid("", fmt::format("{} is no JSON: it has a zero byte at {}", what, *zero),
                   "invalid_json");
  json content;
  try {
    content = json::parse(text);
  } catch (const json::exception& e) {
    std::string_view why = e.what();  // "[json.exception.parse_error.101] parse error at ..."
    if (const auto at = why.find("] "); at != std::string_view::npos) why.remove_prefix(at + 2);
    constexpr std::size_t longest_reason = 200;
    return invalid("", fmt::format("{} is no JSON: {}", what, text::printable(why, longest_reason)),
                   "invalid_json");
  }
  if (content.is_object()) return content;
  return invalid("", fmt::format("{} expects a JSON object, found {}", what, shown(content)),
                 "invalid_json");
}

std::string shown(const json& value) {
  constexpr std::size_t longest = 40;
  if (value.is_object()) return value.empty() ? "an empty object" : "an object";
  if (value.is_array()) return value.empty() ? "an empty array" : "an array";
  if (value.is_string())
    return fmt::format("\"{}\"", text::printable(value.get_ref<const std::string&>(), longest));
  return value.dump();
}

const json* field_reader::any(const char* name) const {
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void field_reader::keep(api_error why) {
  if (!error_) error_ = std::move(why);
}

void field_reader::wrong(const char* name, std::string_view expected) {
  const json* const found = any(name);
  keep(invalid(path_of(name),
               fmt::format("'{}' expects {}, found {}", path_of(name), expected,
                           found == nullptr ? "nothing" : shown(*found)),
               "invalid_type")
           .error());
}

void field_reader::flag(const char* name, bool& to) {
  const json* const found = error_ ? nullptr : any(name);
  if (found == nullptr) return;
  if (!found->is_boolean()) return wrong(name, "true or false");
  to = found->get<bool>();
}

void field_reader::text(const char* name, std::string& to) {
  const json* const found = error_ ? nullptr : any(name);
  if (found == nullptr) return;
  if (!found->is_string()) return wrong(name, "a string");
  to = found->get<std::string>();
}

std::optional<double> field_reader::number_in(const char* name, double lowest, double highest,
                                              bool whole) {
  const json* const found = error_ ? nullptr : any(name);
  if (found == nullptr) return std::nullopt;
  const double value = found->is_number() ? found->get<double>() : std::nan("");
  // 16.0 is a whole number: some writers of JSON know no others.
  if (value >= lowest && value <= highest && (!whole || std::trunc(value) == value)) return value;
  wrong(name, fmt::format("a {}number from {} to {}", whole ? "whole " : "", lowest, highest));
  return std::nullopt;
}

void field_reader::reject(const char* name, std::string_view why) {
  const json* const found = error_ ? nullptr : any(name);
  if (found == nullptr || *found == json(false)) return;
  if ((found->is_array() || found->is_object()) && found->empty()) return;
  if (found->is_string() && found->get_ref<const std::string&>().empty()) return;
  keep(unsupported(path_of(name), why).error());
}

parsed<std::string> model_name_in(const json& body) {
  constexpr std::size_t most_bytes = 256;
  field_reader in(body);
  std::string name;
  in.text("model", name);
  if (const auto& why = in.error()) return std::unexpected(*why);
  if (name.size() > most_bytes)
    return invalid("model", fmt::format("'model' has {} bytes; at most {} are possible",
                                        name.size(), most_bytes));
  return name;
}

}  // namespace bitnet::host::openai
