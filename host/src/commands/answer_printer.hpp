#pragma once
// Prints an answer as it comes, and sets the model's thinking apart from its text.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "basic/result.hpp"
#include "commands/chat_format.hpp"
#include "terminal/console.hpp"

namespace bitnet::host {

// The text pushed so far, as a message in OpenAI's form.
[[nodiscard]] result<nlohmann::json> message_of(const bitnet_answer* answer);

// On a terminal it prints the model's text unchanged, with thinking and calls in colours. Elsewhere
// standard output gets text and calls, and standard error the thinking. Without `shows_reasoning`
// the thinking is dropped. With tools each call is a line of JSON.
class answer_printer {
 public:
  answer_printer(const console& out, bool shows_reasoning);

  // Call it before the first take().
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
  bool thinks_ = false;   // inside the thinking block
  bool in_line_ = false;  // standard output has an unfinished line
  std::string call_id_, call_name_, call_arguments_;
  result<void> printed_;
};

}  // namespace bitnet::host
