#include "plugin/text.hpp"

#include <algorithm>

#include "base/utf8.hpp"

namespace bitnet::plugin {
namespace {

bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  // U+0080 to U+009F: some terminals take them as escape sequences.
  return first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

}  // namespace

std::string printable(std::string_view text, std::size_t limit) {
  std::string out;
  while (!text.empty()) {
    const utf8_char first = first_utf8_char(text);
    const bool whole = first.state == utf8_state::complete;
    const std::string_view character = text.substr(0, whole ? first.length : 1);
    if (out.size() + character.size() > limit) return out + "...";
    if (!whole || is_control(character))
      out += '?';
    else
      out += character;
    text.remove_prefix(character.size());
  }
  return out;
}

bool is_backend_name(std::string_view text) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  if (text.empty() || text.size() > 32 || !plain(text.front())) return false;
  return std::ranges::all_of(text,
                             [&](char c) { return plain(c) || c == '.' || c == '_' || c == '-'; });
}

std::string join(const std::vector<std::string>& items, std::string_view separator) {
  std::string out;
  for (const std::string& item : items) {
    if (&item != items.data()) out += separator;
    out += item;
  }
  return out;
}

}  // namespace bitnet::plugin
