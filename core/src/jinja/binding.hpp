#pragma once
// Binds the arguments of a call to the parameters of a built-in function.

#include <initializer_list>
#include <string_view>

#include "jinja/rendering.hpp"

namespace bitnet::jinja {

// Returns one value per name, undefined if it is not given. Too many, unknown or duplicate
// arguments, or fewer than `needed`, are an error; then all are undefined.
[[nodiscard]] sequence bind(rendering& at, std::string_view function, const arguments& given,
                            std::initializer_list<std::string_view> names, std::size_t needed = 0);

// None and undefined count as not given.
[[nodiscard]] inline bool absent(const value& v) {
  return v.is(value::kind::undefined) || v.is(value::kind::none);
}

}  // namespace bitnet::jinja
