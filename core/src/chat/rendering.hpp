#pragma once
// Renders a conversation as the text of a prompt.

#include "chat/request.hpp"
#include "chat/tool_support.hpp"

namespace bitnet::chat {

struct rendering_options {
  std::string_view form;  // never "auto"
  const tool_support* knows = nullptr;
  bool answer = true;        // ends where the answer begins
  bool continues = false;    // ends with the open last message, the assistant's
  std::size_t left_out = 0;  // oldest messages, counted behind a leading system prompt
};

result<jinja::marked_text> render(const source& from, const conversation& talk,
                                  const rendering_options& how);

}  // namespace bitnet::chat
