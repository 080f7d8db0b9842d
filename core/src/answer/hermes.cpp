// Qwen2.5, Qwen3, Falcon 3, Falcon-E: <tool_call>, a JSON object, </tool_call>.
// Source  the chat templates of these models, github.com/NousResearch/Hermes-Function-Calling
#include <fmt/format.h>

#include <array>

#include "answer/bodies.hpp"
#include "answer/grammar_text.hpp"
#include "json/raw.hpp"
#include "json/reading.hpp"

namespace bitnet::answer {
namespace hermes_dialect {
namespace {

constexpr std::array frames = {frame{.begin = "<tool_call>", .end = "</tool_call>"}};

// Fine-tuned models sometimes write the form of another family.
calls_or_reason read(std::string_view body, const tools& known) {
  if (json::trimmed(body).starts_with("<function=")) return read_tagged_calls(body, known);
  return read_json_calls(body);
}

std::string write(const call& one) {
  return fmt::format("<tool_call>\n{{\"name\": {}, \"arguments\": {}}}\n</tool_call>",
                     json::quoted(one.name), one.arguments);
}

std::string grammar(const call_choice& which) {
  return call_rules(which, "<tool_call>\n{\"name\": \"", "\", \"arguments\": ", "}\n</tool_call>",
                    "object") +
         std::string(json_rules());
}

schema::notation arguments(const tool&) {
  return {};
}

}  // namespace
}  // namespace hermes_dialect

extern const dialect hermes;
const dialect hermes = {
    .name = "hermes",
    .frames = hermes_dialect::frames,
    .mark = "<tool_call>",
    .read = hermes_dialect::read,
    .write = hermes_dialect::write,
    .grammar = hermes_dialect::grammar,
    .arguments = hermes_dialect::arguments,
    .instructions =
        "To call a function, answer with a JSON object that has its name and its arguments, within "
        "<tool_call> and </tool_call>:\n<tool_call>\n{\"name\": \"NAME\", \"arguments\": "
        "{\"PARAMETER\": VALUE}}\n</tool_call>\nFor several calls write several such blocks.",
};

}  // namespace bitnet::answer
