#include "gguf/text.hpp"

#include <cstdint>

#include "base/utf8.hpp"
#include "text/printable.hpp"

namespace bitnet::gguf {

std::string quote(std::string_view untrusted) {
  constexpr size_t longest = 80;
  std::string out = "'" + text::printable_ascii(untrusted.substr(0, longest));
  if (untrusted.size() > longest) out += "...";
  return out + "'";
}

bool is_utf8(std::string_view bytes) {
  return !first_invalid_utf8(bytes);
}

}  // namespace bitnet::gguf
