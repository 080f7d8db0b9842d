#pragma once
// A conversation as the text of its prompt.

#include "chat/request.hpp"
#include "chat/tool_support.hpp"

namespace bitnet::chat {

struct rendering_options {
  std::string_view form;  // never "auto"
  const tool_support* knows = nullptr;
  bool answer = true;        // ends where an answer begins
  bool continues = false;    // ends with the last message, which is the assistant's and has no end
  std::size_t left_out = 0;  // oldest messages, behind a system prompt that comes first
};

result<jinja::marked_text> render(const source& from, const conversation& talk,
                                  const rendering_options& how);

}  // namespace bitnet::chat
