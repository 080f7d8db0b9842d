#pragma once
// The state of a chat: its messages, and the tokens that the session has evaluated.

#include <optional>
#include <string>
#include <vector>

#include "commands/answer_printer.hpp"
#include "commands/chat_format.hpp"
#include "session/generation.hpp"

namespace bitnet::host {

class conversation {
 public:
  conversation(bitnet_model* model, bitnet_session* session, chat_form form)
      : model_(model), session_(session), form_(std::move(form)) {
    form_.n_context = bitnet_session_capacity(session);
  }

  struct call {
    std::string id;
    std::string name;
  };
  struct answer {
    generated done;
    std::size_t dropped = 0;  // oldest messages, dropped for lack of context
    std::vector<call> calls;  // pending tool calls; each needs a result
  };
  // Adds the messages and the answer, unless it failed, and evaluates only tokens that the session
  // does not hold. Without tools the answer keeps its thinking: the template decides which earlier
  // thinking the model sees. CONTEXT_FULL with a hint if the last message alone does not fit. Opens
  // `to` and prints the answer to it.
  result<answer> ask(std::vector<chat_message> more, generation_setup& setup, answer_printer& to);

  void set_system(std::optional<std::string> text);
  [[nodiscard]] std::optional<std::string> system() const;
  void clear();  // drops all messages but the system prompt

  [[nodiscard]] std::string to_json() const;
  result<void> from_json(const std::string& text);
  [[nodiscard]] std::size_t size() const { return messages_.size(); }

 private:
  result<void> rewind(const token_list& ids, token_list& rest);
  result<void> remember(const chat_prompt& prompt, const answer_printer& printed, answer& to);

  bitnet_model* model_;
  bitnet_session* session_;
  chat_form form_;
  std::vector<chat_message> messages_;
  token_list held_;  // tokens in the session, in order
};

}  // namespace bitnet::host
