#pragma once
// Names behind a dot: methods of texts, lists and dicts, members of objects. No method changes its
// object.

#include <optional>
#include <string>
#include <vector>

#include "jinja/rendering.hpp"

namespace bitnet::jinja {

[[nodiscard]] std::optional<value> method(rendering& at, const value& of, const std::string& name);

// All methods of texts, dicts and lists: "str.strip".
[[nodiscard]] std::vector<std::string> method_names();

}  // namespace bitnet::jinja
