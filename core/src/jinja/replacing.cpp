#include "jinja/replacing.hpp"

#include "jinja/python_text.hpp"

namespace bitnet::jinja {

value replaced(rendering& at, std::string_view text, std::string_view old, std::string_view by,
               int64_t most) {
  if (!at.room(text.size())) return {};
  std::string out;
  while (most != 0 && at.step()) {
    const auto found = text.find(old);
    if (found == std::string_view::npos) break;
    if (!at.room(by.size())) return {};
    out.append(text.substr(0, found)).append(by);
    text.remove_prefix(found + old.size());
    --most;
    if (!old.empty()) continue;
    if (text.empty()) break;  // nothing is found once behind each character
    const std::size_t n = first_character(text).length;
    out += text.substr(0, n);
    text.remove_prefix(n);
  }
  return at.text(out.append(text));
}

}  // namespace bitnet::jinja
