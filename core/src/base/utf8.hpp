#pragma once
// Names of common/text/utf8.hpp in the core's namespace.

#include "text/utf8.hpp"

namespace bitnet {

using text::append_utf8;
using text::first_invalid_utf8;
using text::first_utf8_char;
using text::utf8_char;
using text::utf8_state;

}  // namespace bitnet
