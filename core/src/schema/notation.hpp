#pragma once
// How the arguments of a call are written: as an object of JSON, or as each dialect of calls writes
// an argument. Texts stay owned by the caller.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bitnet::schema {

// Of one argument: `before_name` NAME `before_value` VALUE `behind_value`.
struct argument_signs {
  std::string_view before_name = {};
  std::string_view before_value = {};
  std::string_view behind_value = {};
  std::string_view between = {};  // two arguments
  std::string_view names = {};    // a pattern that each name matches as a whole
  bool unlisted = false;          // arguments that the schema allows and does not list may come
  bool bare_texts = false;        // a string stands there without quotes and escapes
  // A pattern of the bare texts that would be read as no string, by the name of the argument; "":
  // none. It may hold more texts than those: none of them is written.
  std::function<std::string(std::string_view name)> misread = {};
};

struct notation {
  std::string_view null = "null";
  std::string_view yes = "true";
  std::string_view no = "false";
  std::string_view numbers = {};  // a pattern that each number matches as a whole; "": any
  std::vector<std::string_view> never = {};  // texts that no string has in it: they end the call
  std::optional<argument_signs> arguments = {};  // nothing: an object of JSON
};

}  // namespace bitnet::schema
