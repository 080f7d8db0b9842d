#pragma once
// Formats texts from untrusted files for messages.

#include <string>
#include <string_view>

namespace bitnet::gguf {

// 'name', cut to 80 bytes, with everything but printable ASCII written as \xNN: safe on a terminal.
std::string quote(std::string_view untrusted);

[[nodiscard]] bool is_utf8(std::string_view bytes);

}  // namespace bitnet::gguf
