// Any bytes as the chat template of a model file: rejected in words with the line, or text, within
// small limits. What the message says is never taken for the template's own.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "jinja/template.hpp"

namespace {

constexpr std::string_view secret =
    "\xEE\x80\x80";  // U+E000, which a template writes by an escape at most

// Each is marked, and the marks lie in order within the text.
bool secrets_are_marked(const bitnet::jinja::marked_text& text) {
  std::size_t end = 0;
  for (const auto& range : text.message_ranges()) {
    if (range.begin >= range.end || (end != 0 && range.begin <= end)) return false;
    end = range.end;
  }
  if (end > text.size()) return false;
  for (auto at = text.bytes().find(secret); at != std::string::npos;
       at = text.bytes().find(secret, at + 1))
    for (std::size_t i = 0; i < secret.size(); ++i)
      if (text.at(at + i) != bitnet::jinja::origin::message) return false;
  return true;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace bitnet::jinja;
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  const auto parsed = chat_template::parse(source);
  if (!parsed) {
    if (parsed.error().message.empty()) std::abort();
    return 0;
  }
  dict message;
  message.set("role", value("user"));
  const std::string said(secret);
  message.set("content", value("<think>a" + said + "</think> b" + said));
  message.set(value(said), value(marked_text("own", origin::own)));
  dict variables;
  variables.set("messages", value::list({value(std::move(message))}));
  variables.set("add_generation_prompt", value(true));
  constexpr limits small{.steps = 20'000, .made_bytes = 1U << 20U, .depth = 200, .value_depth = 50};
  const auto text = parsed->render(variables, 0, small);
  if (text ? text->size() > small.made_bytes : text.error().message.find("line ") != 0)
    std::abort();
  const bool writes_it =
      source.find(secret) != std::string_view::npos || source.find('\\') != std::string_view::npos;
  if (text && !writes_it && !secrets_are_marked(*text)) std::abort();
  return 0;
}
