#pragma once
// What stands behind a dot: methods of texts, lists and dicts, members of objects. None changes
// what it belongs to.

#include <optional>
#include <string>

#include "jinja/rendering.hpp"

namespace bitnet::jinja {

[[nodiscard]] std::optional<value> method(rendering& at, const value& of, const std::string& name);

}  // namespace bitnet::jinja
