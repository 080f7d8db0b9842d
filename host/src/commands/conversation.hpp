#pragma once
// The state of a chat: messages, and what of them the session has already evaluated.

#include <optional>
#include <string>
#include <vector>

#include "commands/answer_printer.hpp"
#include "commands/chat_format.hpp"
#include "library/generation.hpp"

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
    std::size_t dropped = 0;  // oldest messages that no longer fitted the context
    std::vector<call> calls;  // with tools; each waits for its result
  };
  // Adds these messages and the answer, unless it failed. Without tools the answer is kept with the
  // thinking that it has: what of earlier thinking a model sees again is its template's rule. Only
  // what differs from what the session holds is evaluated. CONTEXT_FULL with a hint when the last
  // message alone does not fit. Prints the answer to `to`, which it opens.
  result<answer> ask(std::vector<chat_message> more, generation_plan& plan, answer_printer& to);

  void set_system(std::optional<std::string> text);
  [[nodiscard]] std::optional<std::string> system() const;
  void clear();  // all but the system prompt

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
  token_list held_;  // by the session, in order
};

}  // namespace bitnet::host
