#pragma once
// Executes the statements of a template.

#include <string>

#include "jinja/rendering.hpp"
#include "jinja/syntax.hpp"

namespace bitnet::jinja {

// Returns the output; it is incomplete if rendering::trouble is set.
[[nodiscard]] marked_text evaluate(rendering& at, const body& all, const dict& variables);

}  // namespace bitnet::jinja
