#pragma once
// Python's + - * / // % and ** on values. Errors of Python are reported by rendering::wrong.

#include <string_view>

#include "jinja/rendering.hpp"

namespace bitnet::jinja {

[[nodiscard]] value arithmetic(rendering& at, std::string_view sign, const value& a,
                               const value& b);
[[nodiscard]] value negative(rendering& at, const value& a);
[[nodiscard]] value positive(rendering& at, const value& a);

// Reports that the operator does not support these operands.
value unsupported(rendering& at, std::string_view sign, const value& a, const value& b);

}  // namespace bitnet::jinja
