#include "tokenizer/token_flags.hpp"

#include <utf8proc.h>

#include <utility>

namespace bitnet::tokenizer {
namespace {

struct letter {
  utf8proc_int32_t code = -1;  // -1: none, or invalid UTF-8
  size_t size = 1;
};

letter first_of(std::string_view text) {
  letter l;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto n = utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size()), &l.code);
  if (n > 0)
    l.size = static_cast<size_t>(n);
  else
    l.code = -1;
  return l;
}

letter last_of(std::string_view text) {
  constexpr size_t longest = 4;
  for (size_t n = 1; n <= longest && n <= text.size(); ++n)
    if (const letter l = first_of(text.substr(text.size() - n)); l.code >= 0 && l.size == n)
      return l;
  return {};
}

// Unicode White_Space.
bool is_blank(const letter& l) {
  if (l.code < 0) return false;
  const auto category = utf8proc_category(l.code);
  constexpr utf8proc_int32_t next_line = 0x85;
  return (l.code >= '\t' && l.code <= '\r') || l.code == next_line ||
         category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

// The characters that \w matches.
bool is_word(const letter& l) {
  if (l.code < 0) return false;
  const auto category = utf8proc_category(l.code);
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO) ||
         category == UTF8PROC_CATEGORY_PC;
}

std::string_view without_blanks_at_end(std::string_view text) {
  while (!text.empty()) {
    const letter l = last_of(text);
    if (!is_blank(l)) break;
    text.remove_suffix(l.size);
  }
  return text;
}

std::string_view without_blanks_at_begin(std::string_view text) {
  while (!text.empty()) {
    const letter l = first_of(text);
    if (!is_blank(l)) break;
    text.remove_prefix(l.size);
  }
  return text;
}

// Appends plain text; joins it to plain text that ends where it begins.
void add_plain(std::vector<fragment>& out, std::string_view text) {
  if (text.empty()) return;
  if (!out.empty() && out.back().id < 0 &&
      out.back().text.data() + out.back().text.size() == text.data())
    out.back().text = {out.back().text.data(), out.back().text.size() + text.size()};
  else
    out.push_back({-1, text});
}

}  // namespace

std::vector<fragment> with_flags(const vocabulary& v, std::vector<fragment> parts) {
  if (v.flags.empty()) return parts;
  std::vector<fragment> out;
  out.reserve(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    const fragment part = parts[i];
    if (part.id < 0) {
      add_plain(out, part.text);
      continue;
    }
    const auto found = v.flags.find(part.id);
    const uint8_t flags = found == v.flags.end() ? uint8_t{0} : found->second;
    // Neighbours in the text: the last letter before and the first behind.
    if ((flags & token_flag::single_word) != 0) {
      const bool before = i > 0 && is_word(last_of(parts[i - 1].text));
      const bool behind = i + 1 < parts.size() && is_word(first_of(parts[i + 1].text));
      if (before || behind) {
        add_plain(out, part.text);
        continue;
      }
    }
    if ((flags & token_flag::lstrip) != 0 && !out.empty() && out.back().id < 0) {
      out.back().text = without_blanks_at_end(out.back().text);
      if (out.back().text.empty()) out.pop_back();
    }
    out.push_back(part);
    if ((flags & token_flag::rstrip) != 0 && i + 1 < parts.size() && parts[i + 1].id < 0)
      parts[i + 1].text = without_blanks_at_begin(parts[i + 1].text);
  }
  return out;
}

}  // namespace bitnet::tokenizer
