#pragma once
// Suggestions for misspelled words: "did you mean --ctx-size?".

#include <string>
#include <string_view>
#include <vector>

namespace bitnet::host {

// " (did you mean '...'?)", or "" if no candidate is similar.
[[nodiscard]] std::string suggestion(std::string_view word,
                                     const std::vector<std::string>& candidates);

}  // namespace bitnet::host
