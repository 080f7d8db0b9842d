#include "tokenizer/unicode_forms.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
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

// What BERT's cleaning takes out: control and format characters, but for the ones that end lines
// and tabs, and private ones.
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

// The blocks of BERT, with 0x2B920 where the block begins at 0x2B820: so it is in Hugging Face's
// tokenizers, by which these models were trained and are run.
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

// Characters taken apart (NFD), without the marks that take no room of their own.
std::vector<char32_t> without_accents(const std::vector<char32_t>& text) {
  std::string bytes;
  for (const char32_t c : text) append_utf8(bytes, c);
  const auto* from = reinterpret_cast<const utf8proc_uint8_t*>(bytes.data());
  const auto length = static_cast<utf8proc_ssize_t>(bytes.size());
  // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): the library's way to combine them
  constexpr auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE);
  const auto room = utf8proc_decompose(from, length, nullptr, 0, options);
  if (room < 0) throw std::bad_alloc();  // all that is left to fail with valid UTF-8
  std::vector<utf8proc_int32_t> parts(static_cast<size_t>(room));
  (void)utf8proc_decompose(from, length, parts.data(), room, options);
  std::vector<char32_t> out;
  for (const utf8proc_int32_t part : parts) {
    const auto c = static_cast<char32_t>(part);
    if (category(c) != UTF8PROC_CATEGORY_MN) out.push_back(c);
  }
  return out;
}

void append_lowercase(std::string& out, char32_t c) {
  append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  // The one character whose small letter is two: i with a dot above.
  if (c == 0x130) append_utf8(out, 0x307);
}

struct freed {
  void operator()(utf8proc_uint8_t* p) const noexcept { std::free(p); }  // as utf8proc asks
};

}  // namespace

std::string composed(std::string_view text) {
  if (is_ascii(text)) return std::string(text);
  utf8proc_uint8_t* made = nullptr;
  // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): the library's way to combine them
  constexpr auto options = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  const auto length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                   static_cast<utf8proc_ssize_t>(text.size()), &made, options);
  const std::unique_ptr<utf8proc_uint8_t, freed> owner(made);
  if (length < 0) throw std::bad_alloc();  // all that is left to fail with valid UTF-8
  return {reinterpret_cast<const char*>(made), static_cast<size_t>(length)};
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
  bool open = false;  // whether the last word may go on
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
