#include "commands/chat_format.hpp"

#include <fmt/format.h>

#include <algorithm>

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

bool is_system(const chat_message& one) {
  return one.role == "system";
}

std::optional<std::string> system_prompt(const settings& set) {
  const std::string& text = set.text("system-prompt");
  if (text.empty()) return std::nullopt;
  return set.flag("escape") ? unescape(text) : text;
}

chat_form chat_form::from(const settings& set) {
  return {set.text("chat-template"), set.flag("parse-special-in-messages")};
}

result<chat_prompt> chat_ids(const bitnet_model* model, const chat_form& form,
                             std::span<const chat_message> messages) {
  std::vector<bitnet_message> views;
  for (const chat_message& one : messages) {
    views.push_back({borrowed(one.role), borrowed(one.content)});
  }
  bitnet_chat_options options;
  bitnet_chat_defaults(&options, sizeof options);
  options.parse_special = form.parse_special ? 1 : 0;
  options.template_name = form.template_name.empty() ? nullptr : form.template_name.c_str();
  options.n_context = form.n_context;
  constexpr std::size_t rarely_more = 8192;
  chat_prompt out{token_list(rarely_more), "", 0};
  library_error err;
  uint64_t count = 0;
  uint64_t left_out = 0;
  const auto tokenize_chat = [&] {
    return bitnet_chat_tokenize(model, &options, views.data(), sizeof views[0], views.size(),
                                out.ids.data(), out.ids.size(), &count, &left_out, &err);
  };
  bitnet_status status = tokenize_chat();
  if (status == BITNET_OK && count > out.ids.size()) {
    out.ids.resize(count);
    status = tokenize_chat();
  }
  if (status == BITNET_CONTEXT_FULL)
    return fail(exit_code::failure, fmt::format("{}: start with -c N", err.message));
  if (status != BITNET_OK) return failed(status, err, stage::text);
  out.ids.resize(std::min<uint64_t>(count, out.ids.size()));
  out.left_out = left_out;
  const auto first = views.begin() + (is_system(messages.front()) ? 1 : 0);
  views.erase(first, first + static_cast<std::ptrdiff_t>(left_out));
  std::string text;
  status = fetch(
      [&](char* to, uint64_t capacity, uint64_t* needed) {
        return bitnet_chat_format(model, options.template_name, views.data(), sizeof views[0],
                                  views.size(), to, capacity, needed, &err);
      },
      text);
  if (status != BITNET_OK) return failed(status, err, stage::text);
  out.begun = begun_answer(text);
  return out;
}

std::function<bool(std::string_view)> after(std::string begun,
                                            std::function<bool(std::string_view)> sink) {
  return [begun = std::move(begun), sink = std::move(sink)](std::string_view text) mutable {
    const std::string before = std::exchange(begun, "");
    return (before.empty() || sink(before)) && sink(text);
  };
}

}  // namespace bitnet::host
