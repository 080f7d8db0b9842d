#pragma once
// Building the sentences of failures from parts, some of which come from hostile files.

#include <concepts>
#include <string>
#include <string_view>

namespace bitnet::gguf {

// 'name', cut to 80 bytes, with everything but printable ASCII written as \xNN: safe on a terminal.
std::string quote(std::string_view untrusted);

[[nodiscard]] bool is_utf8(std::string_view bytes);

inline void append(std::string& to, std::string_view part) {
  to += part;
}
void append(std::string& to, std::integral auto part) {
  to += std::to_string(part);
}

// say("expected ", 3, " of ", name)
template <class... Parts>
std::string say(const Parts&... parts) {
  std::string out;
  (append(out, parts), ...);
  return out;
}

}  // namespace bitnet::gguf
