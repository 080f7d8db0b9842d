#pragma once
// Python's `text % values`.

#include <string>

#include "jinja/rendering.hpp"

namespace bitnet::jinja {

// `values`: a tuple, a dict for %(name)s, or one value. Integers have 64 bits.
[[nodiscard]] value percent_formatted(rendering& at, const marked_text& form, const value& values);

}  // namespace bitnet::jinja
