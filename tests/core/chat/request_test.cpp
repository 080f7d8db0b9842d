// Requests in JSON: what is read, and that whatever is wrong is named by its path.
#include "chat/request.hpp"

#include <gtest/gtest.h>

namespace bitnet::chat {
namespace {

std::string error_of(const conversation_text& text) {
  const auto read = read_conversation(text);
  if (read) return "";
  EXPECT_EQ(read.error().status, BITNET_INVALID_ARGUMENT);
  return read.error().message;
}

TEST(request, reads_messages_of_every_role) {
  const auto read = read_conversation({.messages = R"([
    {"role": "system", "content": "Be kind.", "unknown": 1},
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
     "name": "Ann"},
    {"role": "assistant", "content": null, "reasoning_content": "hm", "refusal": null,
     "tool_calls": [{"id": "c0", "type": "function",
                     "function": {"name": "f", "arguments": "{\"x\": [1, 2.5]}"}},
                    {"function": {"name": "g", "arguments": {"y": null}}},
                    {"function": {"name": "h", "arguments": ""}}]},
    {"role": "tool", "tool_call_id": "c0", "content": "found"}])"});
  ASSERT_TRUE(read) << read.error().message;
  const auto& m = read->messages;
  ASSERT_EQ(m.size(), 4U);
  EXPECT_EQ(m[1].content, "a\nb");
  EXPECT_EQ(m[1].name, "Ann");
  EXPECT_EQ(m[2].content, "");
  EXPECT_EQ(m[2].thinking, "hm");
  ASSERT_EQ(m[2].calls.size(), 3U);
  EXPECT_EQ(m[2].calls[0].arguments.dump(), R"({"x":[1,2.5]})");
  EXPECT_EQ(m[2].calls[1].arguments.dump(), R"({"y":null})");
  EXPECT_EQ(m[2].calls[2].arguments.dump(), "{}");
  EXPECT_EQ(m[3].call_id, "c0");
}

TEST(request, invalid_messages_are_rejected_by_member) {
  const struct {
    const char* why;
    std::string messages;
    const char* says;
  } rows[] = {
      {"nothing", "", "messages: expected JSON, found an error at line 1, column 1"},
      {"no JSON", "[{]", "messages: expected JSON, found an error at line 1, column 3"},
      {"no list", "{}", "messages: expected a list of at least one message, found an object"},
      {"no message", "[]",
       "messages: expected a list of at least one message, found an empty list"},
      {"no object", "[1]", "messages[0]: expected an object, found the number 1"},
      {"no role", R"([{"content": "a"}])", "messages[0].role: expected system, developer"},
      {"an unknown role", R"([{"role": "user", "content": "a"}, {"role": "narrator"}])",
       "messages[1].role: expected system, developer, user, assistant or tool, found the text "
       "'narrator'"},
      {"no content", R"([{"role": "user"}])",
       "messages[0].content: expected a text or a list of parts, found null or nothing"},
      {"a number as content", R"([{"role": "user", "content": 3}])",
       "messages[0].content: expected a text or a list of parts, found the number 3"},
      {"a picture", R"([{"role": "user", "content": [{"type": "image_url"}]}])",
       "messages[0].content[0].type: expected 'text', as models here take nothing else"},
      {"a part without text", R"([{"role": "user", "content": [{"type": "text"}]}])",
       "messages[0].content[0].text: expected a text, found null"},
      {"an assistant that says nothing", R"([{"role": "assistant", "content": null}])",
       "messages[0].content: expected"},
      {"calls of a user", R"([{"role": "user", "content": "a", "tool_calls": [{}]}])",
       "messages[0].tool_calls: expected calls in messages of the role assistant only"},
      {"a call of nothing", R"([{"role": "assistant", "tool_calls": [{}]}])",
       "messages[0].tool_calls[0].function: expected an object"},
      {"arguments that are no JSON",
       R"([{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{x"}}]}])",
       "messages[0].tool_calls[0].function.arguments: expected JSON, found an error at line 1"},
      {"arguments that are a list",
       R"([{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "[]"}}]}])",
       "messages[0].tool_calls[0].function.arguments: expected a JSON text of an object, found an "
       "empty list"},
      {"the form of old", R"([{"role": "assistant", "content": "", "function_call": {}}])",
       "messages[0].function_call: expected nothing: calls are in 'tool_calls'"},
      {"half a surrogate pair", R"([{"role": "user", "content": "\ud800"}])",
       "messages: expected JSON, found an error at line 1"},
      {"no UTF-8", "[{\"role\": \"user\", \"content\": \"\xff\"}]",
       "messages: expected UTF-8, found another byte at 30"},
  };
  for (const auto& r : rows) {
    const std::string found = error_of({.messages = r.messages});
    EXPECT_EQ(found.substr(0, std::string_view(r.says).size()), r.says) << r.why << ": " << found;
  }
}

TEST(request, is_bounded) {
  const std::string deep = std::string(100'000, '[');
  std::string wide = R"([{"role": "user", "content": "a", "more": {)";
  for (int i = 0; i < 2000; ++i) wide += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":0";
  wide += "}}]";
  const std::string many = "[" + std::string(300'000, '0') + "]";
  std::string long_list = "[0";
  for (int i = 0; i < 300'000; ++i) long_list += ",0";
  long_list += "]";
  const struct {
    const char* why;
    std::string messages;
    const char* says;
  } rows[] = {
      {"too deep", deep, "messages: expected lists and objects 64 deep at most"},
      {"too many members", wide, "messages: expected 1024 members of an object at most"},
      {"too many values", long_list, "messages: expected 262144 values at most"},
      {"a number without end", many, "messages: expected"},
  };
  for (const auto& r : rows) {
    const std::string found = error_of({.messages = r.messages});
    EXPECT_EQ(found.substr(0, std::string_view(r.says).size()), r.says) << r.why << ": " << found;
  }
}

TEST(request, invalid_tools_are_rejected_by_member) {
  constexpr const char* hi = R"([{"role": "user", "content": "Hi"}])";
  constexpr const char* f = R"([{"type": "function", "function": {"name": "f"}}])";
  const struct {
    const char* why;
    conversation_text text;
    const char* says;
  } rows[] = {
      {"no list", {hi, "{}", "", ""}, "tools: expected a list of tools, found an object"},
      {"another type",
       {hi, R"([{"type": "web_search"}])", "", ""},
       "tools[0].type: expected 'function'"},
      {"a name of other characters",
       {hi, R"([{"function": {"name": "a b"}}])", "", ""},
       "tools[0].function.name: expected a name of 1 to 64 letters"},
      {"a name twice",
       {hi, R"([{"name": "f"}, {"name": "f"}])", "", ""},
       "tools[1]: expected a name that no other tool has, found 'f' again"},
      {"parameters that are no schema",
       {hi, R"([{"function": {"name": "f", "parameters": []}}])", "", ""},
       "tools[0].function.parameters: expected a JSON Schema"},
      {"a choice that is none", {hi, f, "\"some\"", ""}, "tool_choice: expected 'auto', 'none'"},
      {"a choice of none", {hi, "", "\"required\"", ""}, "tool_choice: expected 'auto' or 'none'"},
      {"a choice of another",
       {hi, f, R"({"type": "function", "function": {"name": "g"}})", ""},
       "tool_choice.function.name: expected the name of one of the tools, found the text 'g'"},
      {"variables that are a list", {hi, "", "", "[]"}, "template_arguments: expected an object"},
      {"a variable that is taken",
       {hi, "", "", R"({"messages": []})"},
       "template_arguments.messages: expected other names"},
  };
  for (const auto& r : rows) {
    const std::string found = error_of(r.text);
    EXPECT_EQ(found.substr(0, std::string_view(r.says).size()), r.says) << r.why << ": " << found;
  }
  EXPECT_EQ(error_of({hi, f, R"({"type": "function", "function": {"name": "f"}})", "{}"}), "");
  EXPECT_EQ(error_of({hi, f, "\"auto\"", R"({"enable_thinking": false})"}), "");
}

}  // namespace
}  // namespace bitnet::chat
