#pragma once
// What a template can call by name, and the namespace that it can write to.

#include <map>
#include <string>

#include "jinja/rendering.hpp"

namespace bitnet::jinja {

[[nodiscard]] const std::map<std::string, value, std::less<>>& global_functions();

}  // namespace bitnet::jinja
