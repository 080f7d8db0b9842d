#pragma once
// Python's `text % values`.

#include <string>

#include "jinja/rendering.hpp"

namespace bitnet::jinja {

// `values`: a tuple of them, a dict for %(name)s, or one. Integers have 64 bits, as everywhere.
[[nodiscard]] value percent_formatted(rendering& at, const marked_text& form, const value& values);

}  // namespace bitnet::jinja
