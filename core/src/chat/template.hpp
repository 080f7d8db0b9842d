#pragma once
// Conversations as the text that a chat model was trained on.
//
// Templates are named and built in. The Jinja text in a model file helps to guess the name (the
// published 2B-4T file carries a wrong one), and is itself the template "model".
// Source  docs/reference/models.md#chat-forms

#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "tokenizer/tokenizer.hpp"

namespace bitnet::chat {

struct message {
  std::string_view role;  // "system", "user" or "assistant"
  std::string_view content;
};

// The name of the template that fits the vocabulary best; "instruct" when nothing tells.
std::string_view guess(const tokenizer::tokenizer& tokens);

// `name`: "auto" or one of names(). "model" is BITNET_UNSUPPORTED where the file has none, and
// fails as jinja/template.hpp says where it cannot be rendered. The result ends where the
// assistant's answer begins, includes the bos text where the form has one, and is to be tokenized
// with special tokens parsed.
result<std::string> format(std::string_view name, const tokenizer::tokenizer& tokens,
                           std::span<const message> messages);

std::string names();  // "bitnet, llama3, ..." for messages

}  // namespace bitnet::chat
