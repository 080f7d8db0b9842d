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

struct chat_prompt {
  token_list ids;
  // What it has of the answer already: "<think>\n" where a template opens that block, else "".
  std::string begun;
};

// `template_name` "" is "auto". Ends where the answer begins, or within its thinking.
[[nodiscard]] result<chat_prompt> chat_ids(const bitnet_model* model,
                                           const std::string& template_name,
                                           std::span<const chat_message> messages);

// Takes what is generated, and hands it on to `sink` with `begun` before it.
[[nodiscard]] std::function<bool(std::string_view)> after(
    std::string begun, std::function<bool(std::string_view)> sink);

}  // namespace bitnet::host
