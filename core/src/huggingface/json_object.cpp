// Parses the JSON of a checkpoint's files, with the position of errors.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "gguf/text.hpp"
#include "huggingface/config.hpp"
#include "text/json_members.hpp"

namespace bitnet::huggingface {
namespace {

using nlohmann::json;

// Accepts everything, and keeps the position of the first error.
struct first_fault : nlohmann::json_sax<json> {
  std::size_t position = 0;  // bytes read, including the faulty ones
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t at, const std::string&, const json::exception&) override {
    position = at;
    return false;
  }
};

// "line 3, column 12: NaN, which JSON does not have; ..."
std::string fault_in(std::string_view text) {
  if (const auto zero = text::zero_byte(text)) return fmt::format("a zero byte at {}", *zero);
  first_fault found;
  if (json::sax_parse(text.begin(), text.end(), &found)) return "it holds something else";
  const std::size_t at = std::min(std::max<std::size_t>(found.position, 1) - 1, text.size());
  const std::string_view before = text.substr(0, at);
  const auto line = 1 + std::ranges::count(before, '\n');
  const std::size_t column = at - (before.rfind('\n') + 1) + 1;
  const std::string place = fmt::format("line {}, column {}", line, column);
  const std::string_view rest = text.substr(at);
  for (const std::string_view word : {"NaN", "Infinity"})
    if (rest.starts_with(word))
      return fmt::format(
          "{}: {}, which JSON does not have, though Python writes it; put the number "
          "there that is meant, or take the member out",
          place, word);
  if (rest.empty()) return fmt::format("{}: it ends there, cut off; download it again", place);
  constexpr std::size_t shown = 20;
  return fmt::format("{}: {} was not expected there", place, gguf::quote(rest.substr(0, shown)));
}

}  // namespace

result<json> parse_object(std::string_view text, const char* name) {
  json content = text::json_of(text);
  if (content.is_object()) return content;
  return bad_data(fmt::format("{} is no JSON object: {}", name, fault_in(text)));
}

}  // namespace bitnet::huggingface
