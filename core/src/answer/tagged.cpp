// Qwen3.5 and Qwen3-Coder: <tool_call>, <function=NAME>, <parameter=NAME> around each value.
// Source  the chat templates of these models
#include <fmt/format.h>

#include <array>

#include "answer/bodies.hpp"
#include "answer/grammar_text.hpp"
#include "json/raw.hpp"
#include "json/reading.hpp"

namespace bitnet::answer {
namespace tagged_form {
namespace {

// The outer tags are left out now and then.
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

// One rule for each function, so that a call has parameters of its own.
std::string grammar(const call_choice& which) {
  std::string choice;
  std::string rules;
  std::size_t n = 0;
  for (const tool& one : *which.all) {
    if (!which.only.empty() && one.name != which.only) continue;
    choice += fmt::format("{}function-{}", choice.empty() ? "" : " | ", n);
    std::string parameters;
    for (const parameter& p : one.parameters)
      parameters += (parameters.empty() ? "" : " | ") + literal(p.name);
    rules += fmt::format("function-{} ::= {}", n, literal(one.name + ">\n"));
    if (!parameters.empty())
      rules +=
          fmt::format(" ({} ({}) {} content)*", literal("<parameter="), parameters, literal(">\n"));
    rules += "\n";
    ++n;
  }
  return fmt::format("call ::= {} ({}) {}\n{}{}", literal("<tool_call>\n<function="), choice,
                     literal("</function>\n</tool_call>"), rules,
                     until_rules("content", "\n</parameter>\n"));
}

}  // namespace
}  // namespace tagged_form

extern const dialect tagged;
const dialect tagged = {
    .name = "tagged",
    .frames = tagged_form::frames,
    .mark = "<function=",
    .read = tagged_form::read,
    .write = tagged_form::write,
    .grammar = tagged_form::grammar,
    .instructions =
        "To call a function, write its name and its arguments like this, and nothing behind "
        "it:\n<tool_call>\n<function=NAME>\n<parameter=PARAMETER>\nVALUE\n</parameter>\n"
        "</function>\n</tool_call>\nFor several calls write several such blocks.",
};

}  // namespace bitnet::answer
