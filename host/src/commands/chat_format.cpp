#include "commands/chat_format.hpp"

#include "library/answer_parts.hpp"
#include "text_input.hpp"

namespace bitnet::host {
namespace {

std::string begun_answer(std::string_view prompt) {
  const auto last = prompt.find_last_not_of(" \t\r\n");
  if (last == std::string_view::npos) return "";
  return prompt.substr(0, last + 1).ends_with(thinking_begins) ? std::string(thinking_begins) + "\n"
                                                               : "";
}

}  // namespace

std::optional<std::string> system_prompt(const settings& set) {
  const std::string& text = set.text("system-prompt");
  if (text.empty()) return std::nullopt;
  return set.flag("escape") ? unescape(text) : text;
}

result<chat_prompt> chat_ids(const bitnet_model* model, const std::string& template_name,
                             std::span<const chat_message> messages) {
  std::vector<bitnet_message> views;
  for (const chat_message& one : messages) {
    views.push_back({borrowed(one.role), borrowed(one.content)});
  }
  library_error err;
  std::string text;
  const bitnet_status status = fetch(
      [&](char* out, uint64_t capacity, uint64_t* needed) {
        return bitnet_chat_format(model, template_name.empty() ? nullptr : template_name.c_str(),
                                  views.data(), sizeof views[0], views.size(), out, capacity,
                                  needed, &err);
      },
      text);
  if (status != BITNET_OK) return failed(status, err, stage::text);
  auto ids = tokenize(model, text, BITNET_TOKENIZE_PARSE_SPECIAL);
  if (!ids) return std::unexpected(ids.error());
  return chat_prompt{*std::move(ids), begun_answer(text)};
}

std::function<bool(std::string_view)> after(std::string begun,
                                            std::function<bool(std::string_view)> sink) {
  return [begun = std::move(begun), sink = std::move(sink)](std::string_view text) mutable {
    const std::string before = std::exchange(begun, "");
    return (before.empty() || sink(before)) && sink(text);
  };
}

}  // namespace bitnet::host
