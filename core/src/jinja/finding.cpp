#include "jinja/finding.hpp"

namespace bitnet::jinja {
namespace {

// For patterns up to this length std::string's search is faster and still bounded per position.
constexpr std::size_t short_text = 8;

char byte(std::string_view of, std::size_t k, bool back) {
  return back ? of[of.size() - 1 - k] : of[k];
}

}  // namespace

text_finder::text_finder(rendering& at, std::string_view what, way direction)
    : at_(at), what_(what), back_(direction == way::backwards) {
  if (what.size() <= short_text) return;
  if (!at.step(what.size() / 64) || !at.room((what.size() + 1) * sizeof(uint32_t) + 32)) return;
  fallback_.resize(what.size() + 1);
  uint32_t fits = 0;
  for (std::size_t k = 1; k < what.size(); ++k) {
    while (fits > 0 && byte(what, k, back_) != byte(what, fits, back_)) fits = fallback_[fits];
    if (byte(what, k, back_) == byte(what, fits, back_)) ++fits;
    fallback_[k + 1] = fits;
  }
}

std::size_t text_finder::in(std::string_view text) {
  if (!at_.ok()) return std::string_view::npos;
  const std::size_t found =
      fallback_.empty() ? (back_ ? text.rfind(what_) : text.find(what_)) : by_table(text);
  const bool none = found == std::string_view::npos;
  const std::size_t seen = none ? text.size() : back_ ? text.size() - found : found + what_.size();
  return at_.step(seen / 64) ? found : std::string_view::npos;
}

std::size_t text_finder::by_table(std::string_view text) const {
  uint32_t fits = 0;
  for (std::size_t k = 0; k < text.size(); ++k) {
    const char c = byte(text, k, back_);
    while (fits > 0 && c != byte(what_, fits, back_)) fits = fallback_[fits];
    if (c == byte(what_, fits, back_)) ++fits;
    if (fits == what_.size()) return back_ ? text.size() - 1 - k : k + 1 - what_.size();
  }
  return std::string_view::npos;
}

}  // namespace bitnet::jinja
