#pragma once
// Runs the statements of a template.

#include <string>

#include "jinja/rendering.hpp"
#include "jinja/syntax.hpp"

namespace bitnet::jinja {

// What they write; rendering::trouble says whether it is all.
[[nodiscard]] marked_text evaluate(rendering& at, const body& all, const dict& variables);

}  // namespace bitnet::jinja
