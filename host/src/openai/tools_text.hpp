#pragma once
// Converts the tools of other APIs to the form of chats. Schemas keep their text, since the order
// of their members matters.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "openai/body.hpp"

namespace bitnet::host::openai {

struct tool_list {
  std::string text;                  // JSON array for request::tools; "": none
  std::vector<std::string> ignored;  // "tools[1]: web_search"
};

// Reads `tools` of the body; `in` reads the body, `body` is its raw text. A tool has name,
// description and, in the member `schema`, its parameters. A tool with a `type` other than
// `own_type` is left out.
[[nodiscard]] tool_list read_tools(field_reader& in, std::string_view body, const char* own_type,
                                   const char* schema);

// Returns template_arguments made of chat_template_kwargs and the requested effort of thinking;
// with `effort` "" the template decides.
[[nodiscard]] std::string template_arguments_of(field_reader& in, std::string_view effort);

}  // namespace bitnet::host::openai
