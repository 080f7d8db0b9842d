// Any bytes as the chat template of a model file: refused in words with the line, or text, within
// small limits.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "jinja/template.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace bitnet::jinja;
  const auto parsed =
      chat_template::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!parsed) {
    if (parsed.error().message.empty()) std::abort();
    return 0;
  }
  dict message;
  message.set("role", value("user"));
  message.set("content", value("<think>a</think> b"));
  dict variables;
  variables.set("messages", value::list({value(std::move(message))}));
  variables.set("add_generation_prompt", value(true));
  constexpr limits small{.steps = 20'000, .made_bytes = 1U << 20U, .depth = 200, .value_depth = 50};
  const auto text = parsed->render(variables, 0, small);
  if (text ? text->size() > small.made_bytes : text.error().message.find("line ") != 0)
    std::abort();
  return 0;
}
