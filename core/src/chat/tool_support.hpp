#pragma once
// Which parts of tool use a model's chat form supports.

#include "answer/dialect.hpp"
#include "chat/template.hpp"

namespace bitnet::chat {

// Parts that a form does not support are written into messages: descriptions into the system
// prompt, calls into the assistant's text, results into a message of the user.
struct tool_support {
  const answer::dialect* dialect = nullptr;  // in which calls are written
  bool tools = false;
  bool calls = false;
  bool results = false;
  bool developer = false;  // has the role developer; else its messages get the role system
  bool thinks = false;     // its text mentions the dialect's thinking marks
};

// `name`: a form, never "auto". For the file's own template a conversation with a call is rendered;
// the dialect that reads this call from the text is the model's.
tool_support tool_support_of(std::string_view name, const source& from);

}  // namespace bitnet::chat
