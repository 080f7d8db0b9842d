#include "commands/chat_format.hpp"

#include "text_input.hpp"

namespace bitnet::host {

std::optional<std::string> system_prompt(const settings& set) {
  const std::string& text = set.text("system-prompt");
  if (text.empty()) return std::nullopt;
  return set.flag("escape") ? unescape(text) : text;
}

result<token_list> chat_ids(const bitnet_model* model, const std::string& template_name,
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
  return tokenize(model, text, BITNET_TOKENIZE_PARSE_SPECIAL);
}

}  // namespace bitnet::host
