// Dialects without calls: text that looks like a call stays text.
#include "answer/dialect.hpp"

namespace bitnet::answer {

extern const dialect none;
const dialect none = {.name = "none"};

// For the thinking marks of MiniCPM 3 and 4.
extern const dialect none_minicpm;
const dialect none_minicpm = {.name = "none_minicpm",
                              .thinking_begins = "<|thought_start|>",
                              .thinking_ends = "<|thought_end|>"};

}  // namespace bitnet::answer
