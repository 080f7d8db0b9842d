#pragma once
// Python's + - * / // % and ** on values. Where Python raises, so do these: by rendering::wrong.

#include <string_view>

#include "jinja/rendering.hpp"

namespace bitnet::jinja {

[[nodiscard]] value arithmetic(rendering& at, std::string_view sign, const value& a,
                               const value& b);
[[nodiscard]] value negative(rendering& at, const value& a);
[[nodiscard]] value positive(rendering& at, const value& a);

// An operator that does not know what it stands between.
value unsupported(rendering& at, std::string_view sign, const value& a, const value& b);

}  // namespace bitnet::jinja
