#pragma once
// Turns messages into the tokens of a chat prompt.

#include <optional>
#include <span>
#include <string>

#include "session/engine.hpp"
#include "session/saved_chat.hpp"

namespace bitnet::host {

// The text of --system-prompt, unescaped; nothing if it is empty or not given.
[[nodiscard]] std::optional<std::string> system_prompt(const settings& set);

[[nodiscard]] bool is_system(const chat_message& one);

// How messages become a prompt.
struct chat_form {
  std::string template_name;   // "" is "auto"
  bool parse_special = false;  // control tokens written in a message become those tokens
  uint64_t n_context = 0;      // bitnet_chat_options.n_context; 0: no limit
  std::string tools;           // JSON of --tools; "": none

  // Exit code 2 if the file of --tools cannot be read.
  static result<chat_form> from(const settings& set);
};

struct chat_prompt {
  token_list ids;
  // The answer's begin that the prompt already has: "<think>\n" if a template opens that block,
  // else "".
  std::string begun;
  std::size_t left_out = 0;    // oldest messages that were dropped; the system prompt stays
  chat_handle chat;            // NULL: the prompt is not a chat
  bool has_own_marks = false;  // the model marks its thinking with tags of its own
};

// The ids end where the answer begins, or inside its thinking block.
[[nodiscard]] result<chat_prompt> chat_ids(const bitnet_model* model, const chat_form& form,
                                           std::span<const chat_message> messages);

// Opens a parser for the answer to `prompt`. Without tools it still parses <tool_call>, since a
// system prompt may ask for such calls; not for a model with its own thinking tags.
[[nodiscard]] result<answer_handle> open_answer(const chat_prompt& prompt, const chat_form& form);

}  // namespace bitnet::host
