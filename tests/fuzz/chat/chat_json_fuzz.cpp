// Any bytes as a request in JSON, its four texts separated by NUL: rejected by a path, or a prompt
// in which messages and tools have no control token.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "../../core/chat/small_vocabulary.hpp"
#include "chat/prompt.hpp"

namespace {

using namespace bitnet::chat;

constexpr const char* jinja =
    "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}"
    "{% for m in messages %}<|turn|>{{ m.role }} {{ m.content }} {{ m.reasoning_content }}"
    "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}"
    "{% endfor %}{% if add_generation_prompt %}<|turn|>{% endif %}";

bool names_its_text(std::string_view message) {
  constexpr std::array<std::string_view, 4> names = {"messages", "tools", "tool_choice",
                                                     "template_arguments"};
  return std::ranges::any_of(names, [&](std::string_view name) {
    return message.starts_with(name) && message.find("expected ") != std::string_view::npos;
  });
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto tokens = vocabulary({"<|turn|>"}, jinja);
  static const source from(tokens);
  static const tool_support own = tool_support_of("model", from);
  std::array<std::string_view, 4> texts;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  for (std::string_view& one : texts) {
    const auto end = std::min(rest.find('\0'), rest.size());
    one = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const auto talk = read_conversation({texts[0], texts[1], texts[2], texts[3]});
  if (!talk) {
    if (!names_its_text(talk.error().message)) std::abort();
    return 0;
  }
  const auto turn = *tokens.find("<|turn|>");
  const auto prompt = make_prompt(from, own, *talk, {.form = "model"});
  if (prompt) {
    const auto turns = static_cast<std::size_t>(std::ranges::count(prompt->ids, turn));
    if (turns > talk->messages.size() + 2) std::abort();
  }
  const auto named = make_prompt(from, tool_support_of("chatml", from), *talk, {.form = "chatml"});
  if (named && std::ranges::count(named->ids, turn) != 0) std::abort();
  return 0;
}
