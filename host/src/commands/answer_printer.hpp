#pragma once
// Prints an answer as it comes, with what the model thinks set off from what it says.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "commands/chat_format.hpp"
#include "result.hpp"
#include "terminal/console.hpp"

namespace bitnet::host {

// What was pushed, as a message in OpenAI's form.
[[nodiscard]] result<nlohmann::json> message_of(const bitnet_answer* answer);

// On a terminal all of it as the model writes it, thinking and calls in colours if there are any.
// Elsewhere standard output gets what the model says, and its calls; the thinking goes to standard
// error. Without `shows_reasoning` it goes nowhere. With tools each call is a line of JSON.
class answer_printer {
 public:
  answer_printer(const console& out, bool shows_reasoning);

  // Before the first take().
  result<void> open(const chat_prompt& prompt, const chat_form& form);
  // False when standard output cannot be written; printed() says why.
  bool take(std::string_view text);
  bool finish();
  [[nodiscard]] const result<void>& printed() const { return printed_; }
  [[nodiscard]] const bitnet_answer* answer() const { return answer_.get(); }

 private:
  bool print_events();
  void print_event(const bitnet_answer_event& one);
  void print_reasoning(std::string_view text);
  void print_call(const bitnet_answer_event& one);
  void print_content(std::string_view text);
  void begin_line();

  const console& out_;
  bool shows_reasoning_;
  bool on_terminal_;
  bool calls_as_json_ = false;
  answer_handle answer_;
  bool thinks_ = false;   // the block has begun and not ended
  bool in_line_ = false;  // standard output has a line that is not ended
  std::string call_id_, call_name_, call_arguments_;
  result<void> printed_;
};

}  // namespace bitnet::host
