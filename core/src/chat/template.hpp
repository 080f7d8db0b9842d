#pragma once
// Conversations as the text that a chat model was trained on.
//
// Templates are named and built in, and the Jinja text in a model file is the template "model".
// Which of them a model gets unasked, choose() says: the published 2B-4T file carries a wrong one.
// Source  docs/reference/models.md#chat-forms

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "jinja/template.hpp"
#include "tokenizer/tokenizer.hpp"

namespace bitnet::chat {

struct message {
  std::string_view role;  // "system", "user" or "assistant"
  std::string_view content;
};

// A vocabulary, which outlives it, and the template of its file, which is parsed once, here.
class source {
 public:
  // Implicit: what takes a source takes a vocabulary, too.
  source(const tokenizer::tokenizer& tokens);
  [[nodiscard]] const tokenizer::tokenizer& tokens() const { return *tokens_; }
  // BITNET_UNSUPPORTED where the file has none; BITNET_BAD_DATA where it cannot be parsed.
  [[nodiscard]] const result<jinja::chat_template>& own() const { return own_; }

 private:
  const tokenizer::tokenizer* tokens_;
  result<jinja::chat_template> own_;
};

// The name of the built-in template that fits the file's own one, or else the vocabulary, best;
// "instruct" where neither is known.
std::string_view guess(const tokenizer::tokenizer& tokens);

// What "auto" is for a model. The file's own template, if it renders a conversation in little time,
// what the user says is in the text, the text does not end in a token that ends generation, and it
// does not contradict the vocabulary: where a token ends turns, apart from the one that ends texts,
// the text has that one or another special token beside bos and eos. Else guess().
struct choice {
  std::string_view form;   // of names(), never "auto"
  std::string why;         // one line
  bool set_aside = false;  // the file has a template of its own, and it is not taken
};
choice choose(const source& from);

// `name`: "auto" or one of names(). "model" is BITNET_UNSUPPORTED where the file has none, and
// fails as jinja/template.hpp says where it cannot be rendered. The result ends where the
// assistant's answer begins, includes the bos text where the form has one, and says what of it came
// from messages: their contents, and roles that no template makes tokens of. Thinking of earlier
// answers, <think> ... </think> at their beginning, is left to the file's own template, stays in
// "raw", and is left out elsewhere. Without `answer` it ends behind the last message.
result<jinja::marked_text> format(std::string_view name, const source& from,
                                  std::span<const message> messages, bool answer = true);

// The file's own template with these variables, bos_token and eos_token.
result<jinja::marked_text> render_own(const source& from, jinja::dict variables,
                                      const jinja::limits& bounds = {});

// A role as templates are given it: a text of the template where it is one that they make tokens
// of.
jinja::marked_text role_text(std::string_view role);

// The tokens of a rendered conversation. Control tokens come from the template alone, unless
// `parse_special_in_messages`: then a message that writes one has it.
result<std::vector<tokenizer::token>> encode(const tokenizer::tokenizer& tokens,
                                             const jinja::marked_text& text,
                                             bool parse_special_in_messages);

std::string names();  // "bitnet, llama3, ..." for messages

}  // namespace bitnet::chat
