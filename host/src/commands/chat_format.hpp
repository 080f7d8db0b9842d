#pragma once
// Messages to the tokens of a chat prompt.

#include <optional>
#include <span>
#include <string>

#include "library/engine.hpp"
#include "library/saved_chat.hpp"

namespace bitnet::host {

// From --system-prompt, unescaped; nothing when it is empty or not given.
[[nodiscard]] std::optional<std::string> system_prompt(const settings& set);

// `template_name` "" is the model's own form. Ends where the answer begins.
[[nodiscard]] result<token_list> chat_ids(const bitnet_model* model,
                                          const std::string& template_name,
                                          std::span<const chat_message> messages);

}  // namespace bitnet::host
