#pragma once
// Conversations in files, as /save writes and /load reads them:
// {"messages": [{"role": "user", "content": "..."}, ...]}, a role "system" only first.

#include <span>
#include <string>
#include <vector>

#include "basic/result.hpp"

namespace bitnet::host {

struct chat_message {
  std::string role;  // system, user, assistant, tool
  std::string content;
  // Other members of the message, as the JSON text of an object: "tool_calls", "tool_call_id" and
  // "reasoning_content"; "" if there are none.
  std::string more = {};
};

// A JSON list in OpenAI's form. Bytes that are not UTF-8, which a model may generate, become
// U+FFFD.
[[nodiscard]] std::string messages_json(std::span<const chat_message> messages);
// The text of a saved chat; it treats such bytes in the same way.
[[nodiscard]] std::string write_saved_chat(std::span<const chat_message> messages);
// Exit code 2 for anything else. Safe for any bytes: tests/fuzz/session/saved_chat_fuzz.cpp. The
// library checks the contents of calls.
[[nodiscard]] result<std::vector<chat_message>> read_saved_chat(const std::string& text);

}  // namespace bitnet::host
