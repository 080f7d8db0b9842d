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

[[nodiscard]] bool is_system(const chat_message& one);

// How messages become a prompt.
struct chat_form {
  std::string template_name;   // "" is "auto"
  bool parse_special = false;  // a message that writes out a control token has that token
  uint64_t n_context = 0;      // 0: of any length; else bitnet_chat_options.n_context
  std::string tools;           // JSON of --tools; "" without

  // Exit code 2 where the file of --tools cannot be read.
  static result<chat_form> from(const settings& set);
};

struct chat_prompt {
  token_list ids;
  // What it has of the answer already: "<think>\n" where a template opens that block, else "".
  std::string begun;
  std::size_t left_out = 0;    // oldest messages, behind a system prompt
  chat_handle chat;            // NULL where the prompt is no chat
  bool has_own_marks = false;  // the model begins and ends its thinking otherwise
};

// Ends where the answer begins, or within its thinking.
[[nodiscard]] result<chat_prompt> chat_ids(const bitnet_model* model, const chat_form& form,
                                           std::span<const chat_message> messages);

// An answer to it, to be pushed. Without tools, calls are read as <tool_call> has them, since a
// system prompt may ask for them; of a model with own marks around its thinking none are read.
[[nodiscard]] result<answer_handle> open_answer(const chat_prompt& prompt, const chat_form& form);

}  // namespace bitnet::host
