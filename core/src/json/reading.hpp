#pragma once
// Parses JSON texts of callers within limits; errors name the path of the wrong value.
//
// Bounds  On bytes, depth, values in total and members per object, so that the cost of a hostile
//         text is limited. No value beyond a limit is built.
// Errors  BITNET_INVALID_ARGUMENT, with the path: "messages[2].content: expected ..., found ...".

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "json/value.hpp"

namespace bitnet::json {

struct bounds {
  std::size_t bytes = std::size_t{64} << 20U;
  std::size_t depth = 64;        // lists and objects within each other
  std::size_t values = 262'144;  // of the whole text
  std::size_t members = 1024;    // of one object: they are looked up one by one
};

// `what`: name of the text in messages, "messages".
result<value> read(std::string_view text, std::string_view what, const bounds& most = {});

// Describes a value for messages: "a number", "an empty list", "the text 'abc'".
std::string described(const value& found);
std::unexpected<failure> rejected(std::string_view path, std::string_view expected,
                                  const value& found);

// Returns the member, null if there is none; `object` is an object.
const value& member(const value& object, const char* name);

// Writes a JSON text; invalid UTF-8 becomes U+FFFD.
std::string written(const value& of);
std::string quoted(std::string_view text);

}  // namespace bitnet::json
