#pragma once
// Parses a chat in OpenAI's JSON form: messages, tools, tool choice and template variables.
//
// Errors  BITNET_INVALID_ARGUMENT with the path: "messages[2].content: expected ..., found ...".
//         Unknown members are ignored.
// Source  docs/reference/chat-json.md

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answer/tools.hpp"
#include "base/result.hpp"
#include "json/reading.hpp"

namespace bitnet::chat {

struct request_call {
  std::string id;
  std::string name;
  json::value arguments;  // an object
};

struct request_message {
  std::string role;     // system, developer, user, assistant, tool
  std::string content;  // several text parts are joined by line ends
  std::string thinking;
  std::string name;
  std::string call_id;  // for the role tool
  std::vector<request_call> calls;
};

enum class calling : uint8_t { automatic, none, required, named };

struct conversation {
  std::vector<request_message> messages;  // at least one
  json::value tool_texts = json::value::array();
  answer::tools tools;
  calling choice = calling::automatic;
  std::string tool;                               // of calling::named
  json::value variables = json::value::object();  // for the template
};

// The JSON texts; "": not given.
struct conversation_text {
  std::string_view messages = {};
  std::string_view tools = {};
  std::string_view tool_choice = {};
  std::string_view variables = {};
};

result<conversation> read_conversation(const conversation_text& text);

}  // namespace bitnet::chat
