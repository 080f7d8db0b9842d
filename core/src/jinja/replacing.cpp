#include "jinja/replacing.hpp"

#include "jinja/python_text.hpp"

namespace bitnet::jinja {

value replaced(rendering& at, const marked_text& whole, std::string_view old, const marked_text& by,
               int64_t most) {
  std::string_view text = whole.bytes();
  if (!at.room(2 * text.size())) return {};
  marked_text out;
  while (most != 0 && at.step()) {
    const auto found = text.find(old);
    if (found == std::string_view::npos) break;
    if (!at.room(2 * by.size())) return {};
    out.append(whole, text.substr(0, found)).append(by);
    text.remove_prefix(found + old.size());
    --most;
    if (!old.empty()) continue;
    if (text.empty()) break;  // nothing is found once behind each character
    const std::size_t n = first_character(text).length;
    out.append(whole, text.substr(0, n));
    text.remove_prefix(n);
  }
  return at.text(std::move(out.append(whole, text)));
}

}  // namespace bitnet::jinja
