#pragma once
// Standard output, written at once; it gets the requested output only.

#include <string_view>

#include "basic/result.hpp"

namespace bitnet::host {

// Writes all of it; false with errno otherwise.
[[nodiscard]] bool write_all(int fd, std::string_view text);

// Exit code 1 if it cannot be written; without a message if the reader has closed the pipe (EPIPE).
[[nodiscard]] result<void> print(std::string_view text);

}  // namespace bitnet::host
