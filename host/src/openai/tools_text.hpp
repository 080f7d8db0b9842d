#pragma once
// The tools of other APIs in the form of chats, with each schema as it was written: the order of
// its members counts.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "openai/body.hpp"

namespace bitnet::host::openai {

struct tool_list {
  std::string text;                  // a JSON array for request::tools; "": there is none
  std::vector<std::string> ignored;  // "tools[1]: web_search"
};

// `tools` of the body that `in` reads, whose text is `body`. Each has name, description and, as the
// member `schema`, its parameters. One whose `type` is neither `own_type` nor absent is left out.
[[nodiscard]] tool_list read_tools(field_reader& in, std::string_view body, const char* own_type,
                                   const char* schema);

// template_arguments of chat_template_kwargs, and of how much the model is to think: "" leaves that
// to the template.
[[nodiscard]] std::string template_arguments_of(field_reader& in, std::string_view effort);

}  // namespace bitnet::host::openai
