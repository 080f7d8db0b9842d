#pragma once
// What of tools a model's form can say by itself.

#include "answer/dialect.hpp"
#include "chat/template.hpp"

namespace bitnet::chat {

// What a form does not know is written into messages: the descriptions into the system prompt,
// calls into the text of the assistant, results into one of the user.
struct tool_support {
  const answer::dialect* form = nullptr;  // that calls are written in
  bool tools = false;
  bool calls = false;
  bool results = false;
  bool developer = false;  // the role; else it is the system
  bool thinks = false;     // its text mentions the dialect's thinking
};

// `name`: a form, never "auto". Of the file's own template by what it renders: a conversation with
// a call is rendered, and the dialect that reads the same call from the text is the model's.
tool_support tool_support_of(std::string_view name, const source& from);

}  // namespace bitnet::chat
