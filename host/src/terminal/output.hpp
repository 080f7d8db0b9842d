#pragma once
// Standard output: what was asked for and nothing else, written at once.

#include <string_view>

#include "result.hpp"

namespace bitnet::host {

// Writes all of it; false with errno otherwise.
[[nodiscard]] bool write_all(int fd, std::string_view text);

// Exit code 1 when it cannot be written; without a message where the reader has just left (EPIPE).
[[nodiscard]] result<void> print(std::string_view text);

}  // namespace bitnet::host
