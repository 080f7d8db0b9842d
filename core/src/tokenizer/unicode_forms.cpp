#include "tokenizer/unicode_forms.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <new>

#include "tokenizer/utf8.hpp"

namespace bitnet::tokenizer {
namespace {

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::vector<char32_t> code_points(std::string_view text) {
  std::vector<char32_t> out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const utf8_char c = first_utf8_char(text.substr(i));
    out.push_back(c.code_point);
    i += c.length;
  }
  return out;
}

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

// Unicode White_Space.
bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D);
  const auto kind = category(c);
  return c == 0x85 || kind == UTF8PROC_CATEGORY_ZS || kind == UTF8PROC_CATEGORY_ZL ||
         kind == UTF8PROC_CATEGORY_ZP;
}

// Characters that BERT's cleaning removes: control and format characters, except line ends and
// tabs, and private ones.
bool is_dropped(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  if (c == 0xFFFD) return true;
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_CC || kind == UTF8PROC_CATEGORY_CF ||
         kind == UTF8PROC_CATEGORY_CO || kind == UTF8PROC_CATEGORY_CS;
}

bool is_punctuation(char32_t c) {
  if (c < 0x80)
    return c > ' ' && c < 0x7F && !(c >= '0' && c <= '9') &&
           !((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

// BERT's blocks, but with 0x2B920 where the block begins at 0x2B820. Hugging Face's tokenizers,
// with which these models were trained and run, have it so.
bool is_chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

std::vector<char32_t> cleaned(std::string_view text) {
  std::vector<char32_t> out;
  for (const char32_t c : code_points(text)) {
    if (c == 0 || is_dropped(c)) continue;
    if (is_chinese(c)) {
      out.insert(out.end(), {U' ', c, U' '});
    } else {
      out.push_back(is_white_space(c) ? U' ' : c);
    }
  }
  return out;
}

// utf8proc's options are bits of an enumeration.
constexpr auto apart =
    // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): the library's way to combine them
    static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE);
constexpr auto together =
    // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): the library's way to combine them
    static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);

void append_apart(std::vector<utf8proc_int32_t>& out, char32_t c) {
  constexpr utf8proc_ssize_t most_parts = 4;  // of the longest canonical decomposition
  std::array<utf8proc_int32_t, most_parts> parts{};
  int kept = 0;  // output of the library, not used
  const auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(), most_parts,
                                         apart, &kept);
  if (n < 0 || n > most_parts) throw std::bad_alloc();  // never with valid UTF-8
  out.insert(out.end(), parts.begin(), parts.begin() + n);
}

// The canonical order of marks, UAX 15: between two characters of class 0 they are sorted by class,
// stably. utf8proc_decompose uses a sort with quadratic time.
void order_marks(std::vector<utf8proc_int32_t>& text) {
  struct mark {
    utf8proc_propval_t order;
    utf8proc_int32_t what;
  };
  std::vector<mark> marks;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    bool sorted = true;
    utf8proc_propval_t before = 0;
    marks.clear();
    for (; i < text.size(); ++i) {
      const auto order =
          text[i] < 0x300 ? utf8proc_propval_t{0} : utf8proc_get_property(text[i])->combining_class;
      if (order == 0) break;
      sorted = sorted && order >= before;
      before = order;
      marks.push_back({order, text[i]});
    }
    if (!sorted) {  // counting sort, since classes are few
      std::array<size_t, 257> at{};
      for (const mark& m : marks) ++at[static_cast<size_t>(m.order) + 1];
      for (size_t k = 1; k < at.size(); ++k) at[k] += at[k - 1];
      for (const mark& m : marks) text[begin + at[static_cast<size_t>(m.order)]++] = m.what;
    }
    ++i;
  }
}

std::vector<utf8proc_int32_t> taken_apart(const std::vector<char32_t>& text) {
  std::vector<utf8proc_int32_t> out;
  out.reserve(text.size() + text.size() / 4);
  for (const char32_t c : text) append_apart(out, c);
  order_marks(out);
  return out;
}

// Decomposes characters (NFD) and drops the nonspacing marks.
std::vector<char32_t> without_accents(const std::vector<char32_t>& text) {
  std::vector<char32_t> out;
  for (const utf8proc_int32_t part : taken_apart(text)) {
    const auto c = static_cast<char32_t>(part);
    if (category(c) != UTF8PROC_CATEGORY_MN) out.push_back(c);
  }
  return out;
}

void append_lowercase(std::string& out, char32_t c) {
  append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  // The one character whose lower case is two characters: i with a dot above.
  if (c == 0x130) append_utf8(out, 0x307);
}

}  // namespace

std::string composed(std::string_view text) {
  if (is_ascii(text)) return std::string(text);
  std::vector<utf8proc_int32_t> parts = taken_apart(code_points(text));
  const auto length =
      utf8proc_normalize_utf32(parts.data(), static_cast<utf8proc_ssize_t>(parts.size()), together);
  if (length < 0) throw std::bad_alloc();  // never with valid UTF-8
  parts.resize(static_cast<size_t>(length));
  std::string out;
  out.reserve(text.size());
  for (const utf8proc_int32_t c : parts) append_utf8(out, static_cast<char32_t>(c));
  return out;
}

std::string lowercased(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char32_t c : code_points(text)) append_lowercase(out, c);
  return out;
}

std::vector<std::string> bert_words(std::string_view text, const bert_options& options) {
  std::vector<char32_t> characters = cleaned(text);
  if (options.strip_accents) characters = without_accents(characters);
  std::vector<std::string> words;
  bool open = false;  // the last word may continue
  for (const char32_t c : characters) {
    if (c == ' ' || is_white_space(c)) {
      open = false;
      continue;
    }
    const bool alone = is_punctuation(c);
    if (!open || alone) words.emplace_back();
    if (options.lowercase) {
      append_lowercase(words.back(), c);
    } else {
      append_utf8(words.back(), c);
    }
    open = !alone;
  }
  return words;
}

}  // namespace bitnet::tokenizer
