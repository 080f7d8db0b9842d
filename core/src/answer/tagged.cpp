// Qwen3.5 and Qwen3-Coder: <tool_call>, <function=NAME>, <parameter=NAME> around each value.
// Source  the chat templates of these models
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "answer/bodies.hpp"
#include "answer/grammar_text.hpp"
#include "json/raw.hpp"
#include "json/reading.hpp"

namespace bitnet::answer {
namespace tagged_dialect {
namespace {

// Models sometimes omit `<tool_call>`, so `<function=` also begins a call.
constexpr std::array frames = {frame{.begin = "<tool_call>", .end = "</tool_call>"},
                               frame{.begin = "<function=", .end = "</function>", .kept = true}};

calls_or_reason read(std::string_view body, const tools& known) {
  if (json::trimmed(body).starts_with("{")) return read_json_calls(body);
  return read_tagged_calls(body, known);
}

std::string write(const call& one) {
  std::string out = fmt::format("<tool_call>\n<function={}>\n", one.name);
  for (const auto& [name, content] : json::members_of(one.arguments))
    out += fmt::format("<parameter={}>\n{}\n</parameter>\n", name,
                       content.starts_with('"') ? json::decoded(content) : std::string(content));
  return out + "</function>\n</tool_call>";
}

// Excludes texts that the reader takes for JSON of one of the types: those that begin as a list, an
// object or a string. A parameter with only the type string is always a text.
std::string misread(const tool& of, std::string_view name) {
  const parameter* described = of.find(name);
  const bool any = described == nullptr || described->types.empty();
  const auto has = [&](std::string_view type) {
    return any || std::ranges::find(described->types, type) != described->types.end();
  };
  std::string out;
  const auto add = [&](std::string_view pattern) {
    out += (out.empty() ? "" : "|") + std::string(pattern);
  };
  if (has("number") || has("integer")) add(R"(-?\d+(\.\d+)?([eE][-+]?\d+)?)");
  if (has("boolean")) add("true|false|True|False");
  if (has("null")) add("null|None");
  if (has("array")) add(R"(\[[^]*)");
  if (has("object")) add(R"(\{[^]*)");
  if (any) add(R"("[^]*)");
  return out.empty() ? "" : fmt::format(R"([ \t\r\n]*({})[ \t\r\n]*)", out);
}

schema::notation arguments(const tool& of) {
  return {.never = {"</parameter>", "</tool_call>"},
          .arguments = schema::argument_signs{
              .before_name = "<parameter=",
              .before_value = ">\n",
              .behind_value = "\n</parameter>\n",
              .names = R"([^>]+)",
              .bare_texts = true,
              .misread = [&of](std::string_view name) { return misread(of, name); }}};
}

// One rule per function, so that each call has its own parameters.
std::string grammar(const call_choice& which) {
  std::string choice;
  std::string rules;
  for (std::size_t n = 0; n < which.all->size(); ++n) {
    const tool& one = (*which.all)[n];
    if (!which.only.empty() && one.name != which.only) continue;
    choice += fmt::format("{}function-{}", choice.empty() ? "" : " | ", n);
    if (n < which.bound.size() && !which.bound[n].empty()) {
      rules += fmt::format("function-{0} ::= {1} arguments-{0}\n{2}", n, literal(one.name + ">\n"),
                           which.bound[n]);
      continue;
    }
    std::string parameters;
    for (const parameter& p : one.parameters)
      parameters += (parameters.empty() ? "" : " | ") + literal(p.name);
    rules += fmt::format("function-{} ::= {}", n, literal(one.name + ">\n"));
    if (!parameters.empty())
      rules +=
          fmt::format(" ({} ({}) {} content)*", literal("<parameter="), parameters, literal(">\n"));
    rules += "\n";
  }
  return fmt::format("call ::= {} ({}) {}\n{}{}", literal("<tool_call>\n<function="), choice,
                     literal("</function>\n</tool_call>"), rules,
                     until_rules("content", "\n</parameter>\n"));
}

}  // namespace
}  // namespace tagged_dialect

extern const dialect tagged;
const dialect tagged = {
    .name = "tagged",
    .frames = tagged_dialect::frames,
    .mark = "<function=",
    .read = tagged_dialect::read,
    .write = tagged_dialect::write,
    .grammar = tagged_dialect::grammar,
    .arguments = tagged_dialect::arguments,
    .instructions =
        "To call a function, write its name and its arguments like this, and nothing behind "
        "it:\n<tool_call>\n<function=NAME>\n<parameter=PARAMETER>\nVALUE\n</parameter>\n"
        "</function>\n</tool_call>\nFor several calls write several such blocks.",
};

}  // namespace bitnet::answer
