#pragma once
// Conversations in files, as /save writes and /load reads them:
// {"messages": [{"role": "user", "content": "..."}, ...]}, a role "system" only first.

#include <string>
#include <vector>

#include "result.hpp"

namespace bitnet::host {

struct chat_message {
  std::string role;  // system, user, assistant
  std::string content;
};

// Bytes that are not UTF-8, which a model may say, become U+FFFD.
[[nodiscard]] std::string write_saved_chat(const std::vector<chat_message>& messages);
// Exit code 2 for anything else; any bytes are safe: tests/fuzz/host/saved_chat_fuzz.cpp.
[[nodiscard]] result<std::vector<chat_message>> read_saved_chat(const std::string& text);

}  // namespace bitnet::host
