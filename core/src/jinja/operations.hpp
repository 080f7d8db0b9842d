#pragma once
// Python's comparisons, subscripts and built-in functions. Errors of Python are reported by
// rendering::wrong.

#include <string>
#include <string_view>

#include "jinja/rendering.hpp"

namespace bitnet::jinja {

[[nodiscard]] std::string type_name(const value& v);  // 'str', 'list' ...
[[nodiscard]] bool truth(const value& v);
[[nodiscard]] bool equal(rendering& at, const value& a, const value& b);
[[nodiscard]] bool less(rendering& at, const value& a, const value& b, std::string_view sign = "<");
[[nodiscard]] bool contains(rendering& at, const value& all, const value& one);
// a sign b, where sign is one of == != < <= > >= in "not in".
[[nodiscard]] bool compare(rendering& at, const value& a, std::string_view sign, const value& b);

[[nodiscard]] marked_text str(rendering& at, const value& v);
// The result has the origin `own` only if all texts in `v` have it and no other value is written.
[[nodiscard]] marked_text repr(rendering& at, const value& v);
[[nodiscard]] uint64_t length(rendering& at, const value& v);
[[nodiscard]] sequence items_of(rendering& at, const value& v);  // in the order of `for`
[[nodiscard]] value item(rendering& at, const value& of, const value& index);
[[nodiscard]] value slice(rendering& at, const value& of, const value& from, const value& to,
                          const value& step);  // undefined: not given
[[nodiscard]] value attribute(rendering& at, const value& of, const std::string& name);
[[nodiscard]] value call(rendering& at, const value& what, arguments& given);

}  // namespace bitnet::jinja
