#pragma once
// How the arguments of a call are written: as an object of JSON, or as each dialect of calls writes
// an argument. Texts stay owned by the caller.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bitnet::schema {

// The form of one argument: `before_name` NAME `before_value` VALUE `behind_value`.
struct argument_signs {
  std::string_view before_name = {};
  std::string_view before_value = {};
  std::string_view behind_value = {};
  std::string_view between = {};  // between two arguments
  std::string_view names = {};    // a pattern that each name matches as a whole
  bool unlisted = false;          // true: unlisted arguments that the schema allows may come
  bool bare_texts = false;        // true: strings have no quotes and no escapes
  // By argument name, a pattern of the bare texts that would not be read as strings; "": none. No
  // text that it matches is written, so it may match too many.
  std::function<std::string(std::string_view name)> misread = {};
};

struct notation {
  std::string_view null = "null";
  std::string_view yes = "true";
  std::string_view no = "false";
  std::string_view numbers = {};  // a pattern that each number must match as a whole; "": any
  std::vector<std::string_view> never = {};      // no string has them: they end the call
  std::optional<argument_signs> arguments = {};  // nullopt: a JSON object
};

}  // namespace bitnet::schema
