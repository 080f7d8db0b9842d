// Llama 3.1 to 3.3, and BitNet on its tokens: the answer is a JSON object with "name" and
// "parameters"; calls of built-in functions follow <|python_tag|>.
// Source  the chat templates of these models, llama.com/docs/model-cards-and-prompt-formats
#include <fmt/format.h>

#include <array>

#include "answer/bodies.hpp"
#include "answer/grammar_text.hpp"
#include "json/raw.hpp"
#include "json/reading.hpp"

namespace bitnet::answer {
namespace llama3_dialect {
namespace {

constexpr std::array frames = {
    frame{.begin = "<|python_tag|>", .ends = ending::answer},
    frame{.begin = "{", .ends = ending::bracket, .leading = true, .kept = true}};

// After <|python_tag|> there may be several objects, separated by ';' or a line end.
calls_or_reason read(std::string_view body, const tools& known) {
  std::string_view rest = json::trimmed(body);
  if (!rest.starts_with('{')) return read_python_calls(rest, known);
  std::vector<call> out;
  while (!rest.empty()) {
    json::bracket_finder find;
    std::size_t end = 0;
    while (end < rest.size() && !find.take(rest[end])) ++end;
    auto read = read_json_calls(rest.substr(0, end + 1));
    if (!read) return read;
    out.insert(out.end(), read->begin(), read->end());
    rest.remove_prefix(std::min(end + 1, rest.size()));
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n;,"), rest.size()));
  }
  return out;
}

std::string write(const call& one) {
  return fmt::format("{{\"name\": {}, \"parameters\": {}}}", json::quoted(one.name), one.arguments);
}

std::string grammar(const call_choice& which) {
  return call_rules(which, "{\"name\": \"", "\", \"parameters\": ", "}", "object") +
         std::string(json_rules());
}

schema::notation arguments(const tool&) {
  return {};
}

}  // namespace
}  // namespace llama3_dialect

extern const dialect llama3;
const dialect llama3 = {
    .name = "llama3",
    .frames = llama3_dialect::frames,
    .mark = "\"parameters\"",
    .read = llama3_dialect::read,
    .write = llama3_dialect::write,
    .grammar = llama3_dialect::grammar,
    .arguments = llama3_dialect::arguments,
    .between_calls = "; ",
    .instructions =
        "To call a function, answer with nothing but a JSON object that has its name and its "
        "arguments:\n{\"name\": \"NAME\", \"parameters\": {\"PARAMETER\": VALUE}}",
};

}  // namespace bitnet::answer
