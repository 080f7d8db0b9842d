// Answers without calls: what looks like one is text.
#include "answer/dialect.hpp"

namespace bitnet::answer {

extern const dialect none;
const dialect none = {.name = "none"};

}  // namespace bitnet::answer
