#pragma once
// A chat as callers describe it in JSON, in OpenAI's form: messages, tools, which of them to call,
// and variables for the template.
//
// Errors  BITNET_INVALID_ARGUMENT with the path of what is wrong: "messages[2].content: expected
//         ..., found ...". Members that are not known are left alone.
// Source  docs/reference/chat-json.md

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answer/tools.hpp"
#include "base/result.hpp"
#include "json/reading.hpp"

namespace bitnet::chat {

struct said_call {
  std::string id;
  std::string name;
  json::value arguments;  // an object
};

struct said_message {
  std::string role;     // system, developer, user, assistant, tool
  std::string content;  // parts of several texts are joined by line ends
  std::string thinking;
  std::string name;
  std::string call_id;  // of the role tool
  std::vector<said_call> calls;
};

enum class calling : uint8_t { automatic, none, required, named };

struct conversation {
  std::vector<said_message> messages;  // at least one
  json::value tool_texts = json::value::array();
  answer::tools tools;
  calling choice = calling::automatic;
  std::string tool;                               // of calling::named
  json::value variables = json::value::object();  // for the template
};

// The JSON texts; "" is: not given.
struct conversation_text {
  std::string_view messages = {};
  std::string_view tools = {};
  std::string_view tool_choice = {};
  std::string_view variables = {};
};

result<conversation> read_conversation(const conversation_text& text);

}  // namespace bitnet::chat
