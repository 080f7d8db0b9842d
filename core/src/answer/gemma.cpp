// Gemma 3 has no tokens for tools: the prompt asks for a form, and the model answers with a fence
// ```tool_code, or with a list of calls or a JSON object as the whole answer.
// Source  ai.google.dev/gemma/docs/capabilities/function-calling
#include <fmt/format.h>

#include <array>

#include "answer/bodies.hpp"
#include "answer/grammar_text.hpp"
#include "json/raw.hpp"

namespace bitnet::answer {
namespace gemma_dialect {
namespace {

constexpr std::array frames = {
    frame{.begin = "```tool_code\n", .end = "```"},
    frame{.begin = "{", .ends = ending::bracket, .leading = true, .kept = true},
    frame{.begin = "[", .ends = ending::bracket, .leading = true, .kept = true}};

calls_or_reason read(std::string_view body, const tools& known) {
  const std::string_view text = json::trimmed(body);
  if (text.starts_with('{') || text.starts_with("[{")) return read_json_calls(text);
  return read_python_calls(text, known);
}

std::string write(const call& one) {
  return fmt::format("```tool_code\n{}\n```", python_call(one));
}

std::string grammar(const call_choice& which) {
  return call_rules(which, "```tool_code\n", "(", ")\n```", "arguments") +
         std::string(python_rules());
}

schema::notation arguments(const tool&) {
  return python_notation("```");
}

}  // namespace
}  // namespace gemma_dialect

extern const dialect gemma;
const dialect gemma = {
    .name = "gemma",
    .frames = gemma_dialect::frames,
    .mark = "```tool_code",
    .read = gemma_dialect::read,
    .write = gemma_dialect::write,
    .grammar = gemma_dialect::grammar,
    .arguments = gemma_dialect::arguments,
    .instructions =
        "To call a function, write the call in Python, each argument by its name, in a "
        "block of its own:\n```tool_code\nNAME(PARAMETER=VALUE)\n```",
};

}  // namespace bitnet::answer
