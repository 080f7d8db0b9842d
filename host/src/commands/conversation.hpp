#pragma once
// The state of a chat: messages, and what of them the session has already evaluated.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "commands/chat_format.hpp"
#include "library/generation.hpp"

namespace bitnet::host {

class conversation {
 public:
  conversation(bitnet_model* model, bitnet_session* session, chat_form form)
      : model_(model), session_(session), form_(std::move(form)) {
    form_.n_context = bitnet_session_capacity(session);
  }

  struct answer {
    generated done;
    std::size_t dropped = 0;  // oldest messages that no longer fitted the context
  };
  // Adds the user's message and the answer, unless it failed, with the thinking that it has: what
  // of earlier thinking a model sees again is its template's rule. Only what differs from what the
  // session holds is evaluated. CONTEXT_FULL with a hint when the message alone does not fit.
  result<answer> ask(const std::string& text, const generation_plan& plan,
                     const std::function<bool(std::string_view)>& sink);

  void set_system(std::optional<std::string> text);
  [[nodiscard]] std::optional<std::string> system() const;
  void clear();  // all but the system prompt

  [[nodiscard]] std::string to_json() const;
  result<void> from_json(const std::string& text);
  [[nodiscard]] std::size_t size() const { return messages_.size(); }

 private:
  result<void> rewind(const token_list& ids, token_list& rest);

  bitnet_model* model_;
  bitnet_session* session_;
  chat_form form_;
  std::vector<chat_message> messages_;
  token_list held_;  // by the session, in order
};

}  // namespace bitnet::host
