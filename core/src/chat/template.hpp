#pragma once
// Renders conversations in the text form that a chat model was trained on.
//
// There are named, built-in templates; the template "model" is the Jinja text of the model file.
// choose() picks the default, since the published 2B-4T file has a wrong one.
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

// A vocabulary, which outlives this object, and the parsed template of its file.
class source {
 public:
  // Implicit, so that a vocabulary can be passed as a source.
  source(const tokenizer::tokenizer& tokens);
  [[nodiscard]] const tokenizer::tokenizer& tokens() const { return *tokens_; }
  // BITNET_UNSUPPORTED if the file has none; BITNET_BAD_DATA if it cannot be parsed.
  [[nodiscard]] const result<jinja::chat_template>& own() const { return own_; }

 private:
  const tokenizer::tokenizer* tokens_;
  result<jinja::chat_template> own_;
};

// Name of the built-in template that best fits the file's template, or else the vocabulary;
// "instruct" if neither is known.
std::string_view guess(const tokenizer::tokenizer& tokens);

// The template that "auto" stands for. The file's own one, if it renders a conversation in little
// time, the text contains what the user says, it does not end in a token that ends generation, and
// it agrees with the vocabulary: if that has a token that ends turns, other than the one that ends
// texts, the text has it or another special token beside bos and eos. Else guess().
struct choice {
  std::string_view form;   // of names(), never "auto"
  std::string why;         // one line
  bool set_aside = false;  // the file has its own template, which is not used
};
choice choose(const source& from);

// `name`: "auto" or one of names(). "model": BITNET_UNSUPPORTED if the file has none; the errors of
// jinja/template.hpp if it cannot be rendered. The result ends where the assistant's answer begins,
// or without `answer` behind the last message. It includes the bos text if the form has one. It
// marks which text came from messages: contents, and roles that are no template's tokens. Thinking
// at the beginning of earlier answers, <think> ... </think>, is left to the file's own template,
// kept in "raw", and dropped elsewhere.
result<jinja::marked_text> format(std::string_view name, const source& from,
                                  std::span<const message> messages, bool answer = true);

// Renders the file's own template with these variables, bos_token and eos_token.
result<jinja::marked_text> render_own(const source& from, jinja::dict variables,
                                      const jinja::limits& bounds = {});

// A role for templates: marked as the template's text if templates make tokens of it.
jinja::marked_text role_text(std::string_view role);

// Tokenizes a rendered conversation. Only the template's text makes control tokens, unless
// `parse_special_in_messages`: then messages do, too.
result<std::vector<tokenizer::token>> encode(const tokenizer::tokenizer& tokens,
                                             const jinja::marked_text& text,
                                             bool parse_special_in_messages);

std::string names();  // "bitnet, llama3, ..." for messages

}  // namespace bitnet::chat
