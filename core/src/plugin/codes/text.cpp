#include "plugin/codes/text.hpp"

#include <algorithm>

namespace bitnet::plugin {

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
