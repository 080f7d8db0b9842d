#pragma once
// The arguments of a call as the parameters of a built-in function.

#include <initializer_list>
#include <string_view>

#include "jinja/rendering.hpp"

namespace bitnet::jinja {

// One value for each name, undefined where it is not given. Too many, unknown or doubled ones and
// fewer than `needed` are wrong; then all are undefined.
[[nodiscard]] sequence bind(rendering& at, std::string_view function, const arguments& given,
                            std::initializer_list<std::string_view> names, std::size_t needed = 0);

// What stands for nothing.
[[nodiscard]] inline bool absent(const value& v) {
  return v.is(value::kind::undefined) || v.is(value::kind::none);
}

}  // namespace bitnet::jinja
