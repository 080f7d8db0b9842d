#pragma once
// Messages to the tokens of a chat prompt.

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "library/engine.hpp"
#include "library/saved_chat.hpp"

namespace bitnet::host {

// From --system-prompt, unescaped; nothing when it is empty or not given.
[[nodiscard]] std::optional<std::string> system_prompt(const settings& set);

[[nodiscard]] bool is_system(const chat_message& one);

struct chat_prompt {
  token_list ids;
  // What it has of the answer already: "<think>\n" where a template opens that block, else "".
  std::string begun;
  std::size_t left_out = 0;  // oldest messages, behind a system prompt
};

// How messages become a prompt.
struct chat_form {
  std::string template_name;   // "" is "auto"
  bool parse_special = false;  // a message that writes out a control token has that token
  uint64_t n_context = 0;      // 0: of any length; else bitnet_chat_options.n_context

  static chat_form from(const settings& set);
};

// Ends where the answer begins, or within its thinking.
[[nodiscard]] result<chat_prompt> chat_ids(const bitnet_model* model, const chat_form& form,
                                           std::span<const chat_message> messages);

// Takes what is generated, and hands it on to `sink` with `begun` before it.
[[nodiscard]] std::function<bool(std::string_view)> after(
    std::string begun, std::function<bool(std::string_view)> sink);

}  // namespace bitnet::host
