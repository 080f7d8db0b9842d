// MiniCPM 3 and 4: <|tool_call_start|>, calls in Python within a fence, <|tool_call_end|>; thinking
// between <|thought_start|> and <|thought_end|>.
// Source  the chat templates of these models, github.com/OpenBMB/MiniCPM
#include <fmt/format.h>

#include <array>

#include "answer/bodies.hpp"
#include "answer/grammar_text.hpp"
#include "json/raw.hpp"

namespace bitnet::answer {
namespace minicpm_dialect {
namespace {

constexpr std::array frames = {frame{.begin = "<|tool_call_start|>", .end = "<|tool_call_end|>"}};

calls_or_reason read(std::string_view body, const tools& known) {
  const std::string_view text = without_fence(body);
  if (text.starts_with('{') || text.starts_with("[{")) return read_json_calls(text);
  return read_python_calls(text, known);
}

std::string write(const call& one) {
  return fmt::format("<|tool_call_start|>\n```python\n{}\n```\n<|tool_call_end|>",
                     python_call(one));
}

std::string grammar(const call_choice& which) {
  return call_rules(which, "<|tool_call_start|>\n```python\n", "(", ")\n```\n<|tool_call_end|>",
                    "arguments") +
         std::string(python_rules());
}

schema::notation arguments(const tool&) {
  return python_notation("<|tool_call_end|>");
}

}  // namespace
}  // namespace minicpm_dialect

extern const dialect minicpm;
const dialect minicpm = {
    .name = "minicpm",
    .frames = minicpm_dialect::frames,
    .mark = "<|tool_call_start|>",
    .thinking_begins = "<|thought_start|>",
    .thinking_ends = "<|thought_end|>",
    .read = minicpm_dialect::read,
    .write = minicpm_dialect::write,
    .grammar = minicpm_dialect::grammar,
    .arguments = minicpm_dialect::arguments,
    .instructions =
        "To call a function, write the call in Python, each argument by its name:\n"
        "<|tool_call_start|>\n```python\nNAME(PARAMETER=VALUE)\n```\n"
        "<|tool_call_end|>",
};

}  // namespace bitnet::answer
