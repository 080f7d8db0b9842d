#pragma once
// The global functions of templates, and the namespace object.

#include <map>
#include <string>

#include "jinja/rendering.hpp"

namespace bitnet::jinja {

[[nodiscard]] const std::map<std::string, value, std::less<>>& global_functions();

}  // namespace bitnet::jinja
