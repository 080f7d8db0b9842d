#pragma once
// The tests, which stand behind `is`.

#include <string>
#include <vector>

#include "jinja/rendering.hpp"

namespace bitnet::jinja {

[[nodiscard]] bool tested(rendering& at, const std::string& name, const value& v, arguments& given);

[[nodiscard]] std::vector<std::string> test_names();

}  // namespace bitnet::jinja
