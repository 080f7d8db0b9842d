#include "jinja/replacing.hpp"

#include "jinja/finding.hpp"
#include "jinja/makers.hpp"
#include "jinja/python_text.hpp"

namespace bitnet::jinja {

value replaced(rendering& at, const marked_text& whole, std::string_view old, const marked_text& by,
               int64_t most) {
  std::string_view text = whole.bytes();
  text_maker out(at);
  text_finder finder(at, old);
  while (most != 0 && at.step()) {
    const auto found = finder.in(text);
    if (found == std::string_view::npos) break;
    if (!out.add(whole, text.substr(0, found)) || !out.add(by)) return {};
    text.remove_prefix(found + old.size());
    --most;
    if (!old.empty()) continue;
    if (text.empty()) break;  // an empty pattern matches once behind each character
    const std::size_t n = first_character(text).length;
    out.add(whole, text.substr(0, n));
    text.remove_prefix(n);
  }
  out.add(whole, text);
  return out.text();
}

value without_ends(rendering& at, const marked_text& whole, side where,
                   std::optional<std::string_view> characters) {
  const std::string_view text = whole.bytes();
  if (!characters) {
    const std::string_view kept = stripped(text, where);
    return at.read(text.size() - kept.size()) ? at.copy(whole, kept) : value();
  }
  // The set: 4 bytes per character in a list that grew.
  if (!at.read(2 * characters->size()) || !at.room(6 * characters->size() + 32)) return {};
  const character_set set(*characters);
  const std::string_view kept = stripped(text, where, &set);
  return at.read(2 * (text.size() - kept.size())) ? at.copy(whole, kept) : value();
}

value changed(rendering& at, const marked_text& text, std::string (*change)(std::string_view)) {
  // A letter may grow from two bytes to three, and the text's buffer to twice its size; likewise
  // its marks.
  if (!at.read(text.size()) || !at.room((text.mixed() ? 9 : 3) * text.size() + 96)) return {};
  return at.kept(with_marks_of(text, change(text.bytes())));
}

}  // namespace bitnet::jinja
