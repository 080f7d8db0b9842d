#pragma once
// JSON texts of callers: read within bounds, and refused by the path of the value that is wrong.
//
// Bounds  bytes, depth, the number of values and of members of an object, so that a hostile text
//         costs no more than its bounds. No value past a bound is built.
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

// `what` names the text in messages: "messages".
result<value> read(std::string_view text, std::string_view what, const bounds& most = {});

// As a message says it: "a number", "an empty list", "the text 'abc'".
std::string described(const value& found);
std::unexpected<failure> refused(std::string_view path, std::string_view expected,
                                 const value& found);

// The member, or null where there is none; `object` is an object.
const value& member(const value& object, const char* name);

// As a JSON text; bytes that are no UTF-8 become U+FFFD.
std::string written(const value& of);
std::string quoted(std::string_view text);

}  // namespace bitnet::json
