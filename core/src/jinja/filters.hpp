#pragma once
// What stands behind | and behind `is`.

#include <string>

#include "jinja/rendering.hpp"

namespace bitnet::jinja {

[[nodiscard]] value filtered(rendering& at, const std::string& name, const value& v,
                             arguments& given);
[[nodiscard]] bool tested(rendering& at, const std::string& name, const value& v, arguments& given);

}  // namespace bitnet::jinja
