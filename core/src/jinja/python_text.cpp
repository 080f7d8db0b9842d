#include "jinja/python_text.hpp"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/utf8.hpp"

namespace bitnet::jinja {
namespace {

constexpr char32_t replacement = 0xFFFD;

// Calls `use(code, bytes)` for each character.
template <class F>
void each_character(std::string_view text, F&& use) {
  while (!text.empty()) {
    const character one = first_character(text);
    use(one.code, text.substr(0, one.length));
    text.remove_prefix(one.length);
  }
}

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_printable(char32_t c) {
  if (c == ' ') return true;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

constexpr char32_t sharp_s = 0xDF;

void append_upper(std::string& out, char32_t c, std::string_view bytes) {
  if (c == sharp_s) {
    out += "SS";
  } else if (c < 0x80) {
    out += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : static_cast<char>(c);
  } else {
    const auto up = static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
    if (up == c)
      out += bytes;
    else
      append_utf8(out, up);
  }
}

void append_title(std::string& out, char32_t c, std::string_view bytes) {
  if (c == sharp_s) {
    out += "Ss";
  } else if (c < 0x80) {
    append_upper(out, c, bytes);
  } else {
    const auto up = static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c)));
    if (up == c)
      out += bytes;
    else
      append_utf8(out, up);
  }
}

void append_lower(std::string& out, char32_t c, std::string_view bytes) {
  if (c < 0x80) {
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : static_cast<char>(c);
  } else {
    const auto low = static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
    if (low == c)
      out += bytes;
    else
      append_utf8(out, low);
  }
}

// Removes what Python accepts in numbers and from_chars does not: underscores between digits, a
// plus.
std::optional<std::string> plain_digits(std::string_view text) {
  text = stripped(text, side::both);
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  std::string out;
  const auto alnum = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z'); };
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '_') {
      if (i == 0 || i + 1 == text.size() || !alnum(out.empty() ? ' ' : out.back()) ||
          text[i + 1] == '_')
        return std::nullopt;
      continue;
    }
    out += c;
  }
  return out;
}

}  // namespace

std::string float_text(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  std::array<char, 64> buffer{};
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), d, std::chars_format::scientific);
  const std::string_view all(buffer.data(), static_cast<std::size_t>(end.ptr - buffer.data()));
  const auto e = all.find('e');
  int exponent = 0;
  const char* first = all.data() + e + 1;
  if (*first == '+') ++first;
  std::from_chars(first, all.data() + all.size(), exponent);
  std::string digits;
  std::string out;
  for (const char c : all.substr(0, e)) {
    if (c == '-')
      out += c;
    else if (c != '.')
      digits += c;
  }
  // Like Python's repr: with exponent from 1e16 on and below 1e-4.
  constexpr int most_digits = 16;
  constexpr int least_exponent = -4;
  const int count = static_cast<int>(digits.size());
  if (exponent < least_exponent || exponent >= most_digits) {
    out += digits.substr(0, 1);
    if (count > 1) out.append(".").append(digits, 1);
    return out + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0)
    return out + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  if (count <= exponent + 1)
    return out + digits + std::string(static_cast<std::size_t>(exponent + 1 - count), '0') + ".0";
  return out + digits.substr(0, static_cast<std::size_t>(exponent) + 1) + "." +
         digits.substr(static_cast<std::size_t>(exponent) + 1);
}

char quote_of(std::string_view text) {
  const bool other =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  return other ? '"' : '\'';
}

bool is_quoted_plainly(char32_t c, char quote) {
  return c != '\\' && c != static_cast<char32_t>(quote) && is_printable(c);
}

std::string quoted_character(char32_t c) {
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  if (c == '\t') return "\\t";
  if (c < 0x80 && c > ' ' && c != 0x7f) return {'\\', static_cast<char>(c)};
  if (c < 0x100) return fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
  if (c < 0x10000) return fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
  return fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
}

std::optional<int64_t> parse_int(std::string_view text, int base) {
  auto digits = plain_digits(text);
  if (!digits || base < 2 || base > 36) return std::nullopt;
  std::string_view rest = *digits;
  const bool negative = rest.starts_with('-');
  if (negative) rest.remove_prefix(1);
  if ((base == 16 && rest.starts_with("0x")) || (base == 2 && rest.starts_with("0b")) ||
      (base == 8 && rest.starts_with("0o")))
    rest.remove_prefix(2);
  if (rest.empty() || rest.front() == '-') return std::nullopt;
  int64_t out = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), out, base);
  if (error != std::errc{} || end != rest.data() + rest.size()) return std::nullopt;
  return negative ? -out : out;
}

std::optional<double> parse_float(std::string_view text) {
  auto digits = plain_digits(text);
  if (!digits || digits->empty()) return std::nullopt;
  // from_chars accepts "nan(...)", Python does not.
  if (digits->find('(') != std::string::npos) return std::nullopt;
  double out = 0;
  const auto [end, error] = std::from_chars(digits->data(), digits->data() + digits->size(), out);
  if (end != digits->data() + digits->size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {  // in Python inf, or 0
    const bool small = digits->find("e-") != std::string::npos;
    const double huge = small ? 0.0 : HUGE_VAL;
    return digits->front() == '-' ? -huge : huge;
  }
  if (error != std::errc{}) return std::nullopt;
  return out;
}

bool is_space(char32_t c) {
  return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_letter(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return true;
    default:
      return false;
  }
}

bool is_digit(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_ND;
}

bool is_upper(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LU;
}

bool is_lower(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LL;
}

std::vector<std::size_t> borders(std::string_view text, std::size_t n) {
  std::vector<std::size_t> out;
  out.reserve(n + 1);
  out.push_back(0);
  std::size_t at = 0;
  while (at < text.size()) {
    at += first_character(text.substr(at)).length;
    out.push_back(at);
  }
  return out;
}

uint64_t count_characters(std::string_view text) {
  uint64_t n = 0;
  for (std::size_t at = 0; at < text.size(); ++n) at += first_character(text.substr(at)).length;
  return n;
}

std::size_t bytes_of(std::string_view text, uint64_t n) {
  std::size_t at = 0;
  for (; n > 0 && at < text.size(); --n) at += first_character(text.substr(at)).length;
  return n == 0 ? at : std::string_view::npos;
}

namespace {

// The bytes of a character as one number.
uint32_t packed(std::string_view character) {
  uint32_t out = 0;
  for (const char c : character) out = out << 8U | static_cast<unsigned char>(c);
  return out;
}

}  // namespace

character_set::character_set(std::string_view of) {
  each_character(of, [&](char32_t, std::string_view bytes) {
    if (packed(bytes) < ascii_.size())
      ascii_[packed(bytes)] = true;
    else
      others_.push_back(packed(bytes));
  });
  std::ranges::sort(others_);
}

bool character_set::has(std::string_view character) const {
  const uint32_t one = packed(character);
  return one < ascii_.size() ? ascii_[one] : std::ranges::binary_search(others_, one);
}

character first_character(std::string_view text) {
  const auto byte = static_cast<unsigned char>(text.front());
  if (byte < 0x80) return {byte, 1};
  const utf8_char one = first_utf8_char(text);
  if (one.state != utf8_state::complete) return {replacement, 1};
  return {one.code_point, one.length};
}

character last_character(std::string_view text) {
  std::size_t length = 1;
  while (length < 4 && length < text.size() &&
         (static_cast<unsigned char>(text[text.size() - length]) & 0xC0) == 0x80)
    ++length;
  const character one = first_character(text.substr(text.size() - length));
  if (one.length == length) return one;
  return {replacement, 1};
}

std::string to_upper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  each_character(text, [&](char32_t c, std::string_view bytes) { append_upper(out, c, bytes); });
  return out;
}

std::string to_lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  each_character(text, [&](char32_t c, std::string_view bytes) { append_lower(out, c, bytes); });
  return out;
}

std::string capitalized(std::string_view text) {
  std::string out;
  each_character(text, [&](char32_t c, std::string_view bytes) {
    if (out.empty())
      append_title(out, c, bytes);
    else
      append_lower(out, c, bytes);
  });
  return out;
}

std::string titled(std::string_view text) {
  std::string out;
  bool inside = false;  // in a word
  each_character(text, [&](char32_t c, std::string_view bytes) {
    const bool cased = is_upper(c) || is_lower(c) || category(c) == UTF8PROC_CATEGORY_LT;
    if (inside)
      append_lower(out, c, bytes);
    else
      append_title(out, c, bytes);
    inside = cased;
  });
  return out;
}

std::string titled_by_filter(std::string_view text) {
  std::string out;
  bool inside = false;
  bool was_gap = true;
  each_character(text, [&](char32_t c, std::string_view bytes) {
    const bool gap = is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    if (gap != was_gap) inside = false;
    was_gap = gap;
    if (inside)
      append_lower(out, c, bytes);
    else
      append_upper(out, c, bytes);
    inside = true;
  });
  return out;
}

std::string_view stripped(std::string_view text, side where, const character_set* characters) {
  const auto goes = [&](char32_t c, std::string_view bytes) {
    return characters != nullptr ? characters->has(bytes) : is_space(c);
  };
  const auto sides = static_cast<unsigned>(where);
  while ((sides & 1U) != 0 && !text.empty()) {
    const character one = first_character(text);
    if (!goes(one.code, text.substr(0, one.length))) break;
    text.remove_prefix(one.length);
  }
  while ((sides & 2U) != 0 && !text.empty()) {
    const character one = last_character(text);
    if (!goes(one.code, text.substr(text.size() - one.length))) break;
    text.remove_suffix(one.length);
  }
  return text;
}

std::string_view take_line(std::string_view& rest, bool keep_ends) {
  std::size_t at = 0;
  while (at < rest.size()) {
    const character one = first_character(rest.substr(at));
    const char32_t c = one.code;
    std::size_t next = at + one.length;
    const bool ends =
        (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029;
    if (ends) {
      if (c == '\r' && next < rest.size() && rest[next] == '\n') ++next;
      const std::string_view line = rest.substr(0, keep_ends ? next : at);
      rest.remove_prefix(next);
      return line;
    }
    at = next;
  }
  return std::exchange(rest, {});
}

}  // namespace bitnet::jinja
