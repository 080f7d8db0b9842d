#pragma once
// "did you mean --ctx-size?" for words that are nearly right.

#include <string>
#include <string_view>
#include <vector>

namespace bitnet::host {

// " (did you mean '...'?)", or nothing when no candidate is near.
[[nodiscard]] std::string suggestion(std::string_view word,
                                     const std::vector<std::string>& candidates);

}  // namespace bitnet::host
