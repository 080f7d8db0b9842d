#include "jinja/lexer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/utf8.hpp"
#include "jinja/python_text.hpp"
#include "text/ascii.hpp"

namespace bitnet::jinja {
namespace {

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool is_decimal(char c) {
  return c >= '0' && c <= '9';
}

class lexer {
 public:
  explicit lexer(std::string source) : source_(std::move(source)) {}

  result<std::vector<token>> run() {
    while (at_ < source_.size() && !trouble_) next_piece();
    if (trouble_) return std::unexpected(*trouble_);
    add(token::kind::end, "");
    return std::move(out_);
  }

 private:
  void add(token::kind what, std::string content) {
    if (out_.size() == most_tokens && !trouble_)
      wrong(BITNET_UNSUPPORTED,
            fmt::format("the template has more than {} words and signs up to here, which none may; "
                        "choose a chat form by its name",
                        most_tokens));
    out_.push_back({what, std::move(content), line_});
  }

  void wrong(const std::string& message) { wrong(BITNET_BAD_DATA, message); }
  void wrong(bitnet_status status, const std::string& message) {
    if (!trouble_) trouble_ = failure{status, fmt::format("line {}: {}", line_, message)};
  }

  [[nodiscard]] std::string_view rest() const { return std::string_view(source_).substr(at_); }

  void advance(std::size_t n) {
    const auto begin = source_.begin() + static_cast<std::ptrdiff_t>(at_);
    line_ += static_cast<uint32_t>(std::count(begin, begin + static_cast<std::ptrdiff_t>(n), '\n'));
    at_ += n;
    if (n > 0) line_starting_ = source_[at_ - 1] == '\n';
  }

  void skip_space() {
    const std::string_view all = rest();
    advance(all.size() - stripped(all, side::left).size());
  }

  // The text up to the next tag, then the tag.
  void next_piece() {
    const std::string_view all = rest();
    std::size_t tag = 0;
    for (;; ++tag) {
      tag = all.find('{', tag);
      if (tag == std::string_view::npos) break;
      if (tag + 1 < all.size() &&
          (all[tag + 1] == '{' || all[tag + 1] == '%' || all[tag + 1] == '#'))
        break;
    }
    if (tag == std::string_view::npos) {
      add(token::kind::data, std::string(all));
      advance(all.size());
      return;
    }
    const char opens = all[tag + 1];
    const char sign = tag + 2 < all.size() ? all[tag + 2] : ' ';
    add_data(all.substr(0, tag), sign, opens == '{');
    const bool signed_tag = sign == '-' || (sign == '+' && opens != '{');
    advance(tag + 2 + (signed_tag ? 1 : 0));
    if (opens == '#') {
      comment();
    } else if (opens == '{') {
      add(token::kind::variable_begin, "");
      inside("}}", token::kind::variable_end);
    } else if (!raw()) {
      add(token::kind::block_begin, "");
      inside("%}", token::kind::block_end);
    }
  }

  // Adds the text before a tag, trimmed by the tag's sign and lstrip_blocks.
  void add_data(std::string_view text, char sign, bool before_variable) {
    std::string_view kept = text;
    if (sign == '-') {
      kept = stripped(text, side::right);
    } else if (sign != '+' && !before_variable) {
      const auto newline = text.rfind('\n');
      const std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
      if ((begin > 0 || line_starting_) && begin < text.size() &&
          stripped(text.substr(begin), side::both).empty())
        kept = text.substr(0, begin);
    }
    if (!kept.empty()) add(token::kind::data, std::string(kept));
  }

  // Skips the end of a tag and the white space that its sign or trim_blocks removes.
  void close(std::size_t end_length, bool minus, bool trims) {
    advance(end_length);
    if (minus)
      skip_space();
    else if (trims && at_ < source_.size() && source_[at_] == '\n')
      advance(1);
  }

  void comment() {
    const auto end = rest().find("#}");
    if (end == std::string_view::npos) {
      wrong("a comment begins that no '#}' ends");
      return;
    }
    const char sign = end > 0 ? rest()[end - 1] : ' ';
    advance(end);
    close(2, sign == '-', sign != '+');
  }

  // Reads {% raw %} ... {% endraw %}; false if this is another tag.
  bool raw() {
    const auto opened = tag_named(at_, "raw");
    if (!opened) return false;
    advance(opened->end - at_);
    if (opened->minus) skip_space();
    for (std::size_t i = source_.find("{%", at_); i != std::string::npos;
         i = source_.find("{%", i + 2)) {
      std::size_t word = i + 2;
      const char sign = word < source_.size() ? source_[word] : ' ';
      if (sign == '-' || sign == '+') ++word;
      const auto closed = tag_named(word, "endraw");
      if (!closed) continue;
      add_data(std::string_view(source_).substr(at_, i - at_), sign, false);
      advance(closed->end - at_);
      close(0, closed->minus, !closed->plus);
      return true;
    }
    wrong("a {% raw %} begins that no {% endraw %} ends");
    return true;
  }

  struct tag_end {
    std::size_t end;
    bool minus, plus;
  };
  // Matches a tag that is only `name`, from behind its opening sign.
  [[nodiscard]] std::optional<tag_end> tag_named(std::size_t from, std::string_view name) const {
    std::string_view text = std::string_view(source_).substr(from);
    const std::size_t whole = text.size();
    text = stripped(text, side::left);
    if (!text.starts_with(name)) return std::nullopt;
    text = stripped(text.substr(name.size()), side::left);
    const bool minus = text.starts_with('-');
    const bool plus = text.starts_with('+');
    if (minus || plus) text.remove_prefix(1);
    if (!text.starts_with("%}")) return std::nullopt;
    return tag_end{from + whole - text.size() + 2, minus, plus};
  }

  // Reads the tokens of a tag and its end.
  void inside(std::string_view ending, token::kind end_kind) {
    std::string open;  // open brackets
    const uint32_t began = line_;
    for (;;) {
      skip_space();
      const std::string_view all = rest();
      if (all.empty()) {
        line_ = began;
        wrong(fmt::format("a tag begins that no '{}' ends", ending));
        return;
      }
      if (open.empty()) {
        const bool block = end_kind == token::kind::block_end;
        const bool minus = all.starts_with('-') && all.substr(1).starts_with(ending);
        const bool plus = block && all.starts_with('+') && all.substr(1).starts_with(ending);
        if (minus || plus || all.starts_with(ending)) {
          add(end_kind, "");
          close(ending.size() + (minus || plus ? 1 : 0), minus, block && !plus);
          return;
        }
      }
      next_token(all, open);
      if (trouble_) return;
    }
  }

  void next_token(std::string_view all, std::string& open) {
    const char c = all.front();
    if (is_name_start(c)) {
      std::size_t n = 1;
      while (n < all.size() && (is_name_start(all[n]) || is_decimal(all[n]))) ++n;
      add(token::kind::name, std::string(all.substr(0, n)));
      advance(n);
    } else if (is_decimal(c)) {
      number(all);
    } else if (c == '\'' || c == '"') {
      quoted_text(all);
    } else {
      sign(all, open);
    }
  }

  void sign(std::string_view all, std::string& open) {
    const auto found =
        std::ranges::find_if(all_signs, [&](std::string_view s) { return all.starts_with(s); });
    if (found == all_signs.end()) {
      const character one = first_character(all);
      wrong(fmt::format("unexpected character '{}'", all.substr(0, one.length)));
      return;
    }
    const char c = found->front();
    if (c == '(' || c == '[' || c == '{') open += c;
    if (c == ')' || c == ']' || c == '}') {
      const char partner = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (open.empty() || open.back() != partner) {
        wrong(fmt::format("'{}' closes nothing", c));
        return;
      }
      open.pop_back();
    }
    add(token::kind::sign, std::string(*found));
    advance(found->size());
  }

  // Counts digits with single underscores between them; 0: none.
  static std::size_t digits(std::string_view text) {
    std::size_t n = 0;
    while (n < text.size() &&
           (is_decimal(text[n]) || (text[n] == '_' && n > 0 && text[n - 1] != '_' &&
                                    n + 1 < text.size() && is_decimal(text[n + 1]))))
      ++n;
    return n;
  }

  void number(std::string_view all) {
    if (all.size() > 2 && all[0] == '0' && std::string_view("xXoObB").contains(all[1])) {
      std::size_t n = 2;
      while (n < all.size() && (is_hex_ascii(all[n]) || all[n] == '_')) ++n;
      const int base = (all[1] | 0x20) == 'x' ? 16 : (all[1] | 0x20) == 'o' ? 8 : 2;
      std::string digits_only;
      for (const char c : all.substr(2, n - 2))
        if (c != '_') digits_only += c;
      const auto value = parse_int(digits_only, base);
      if (!value) {
        wrong(fmt::format("'{}' is no number", all.substr(0, n)));
        return;
      }
      add(token::kind::integer, std::to_string(*value));
      advance(n);
      return;
    }
    std::size_t n = digits(all);
    bool real = false;
    if (n + 1 < all.size() && all[n] == '.' && is_decimal(all[n + 1])) {
      real = true;
      n += 1 + digits(all.substr(n + 1));
    }
    if (n < all.size() && (all[n] == 'e' || all[n] == 'E')) {
      std::size_t m = n + 1;
      if (m < all.size() && (all[m] == '+' || all[m] == '-')) ++m;
      const std::size_t count = digits(all.substr(m));
      if (count > 0) {
        real = true;
        n = m + count;
      }
    }
    add(real ? token::kind::real : token::kind::integer, std::string(all.substr(0, n)));
    advance(n);
  }

  void quoted_text(std::string_view all) {
    const char quote = all.front();
    std::size_t n = 1;
    while (n < all.size() && all[n] != quote) n += all[n] == '\\' ? 2 : 1;
    if (n >= all.size()) {
      wrong("a text begins that no quote ends");
      return;
    }
    auto content = unescaped(all.substr(1, n - 1));
    if (!content) return;
    add(token::kind::text, *std::move(content));
    advance(n + 1);
  }

  std::optional<std::string> unescaped(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\' || i + 1 == text.size()) {
        out += text[i];
        continue;
      }
      const char c = text[++i];
      constexpr std::string_view plain = "\\'\"abfnrtv";
      constexpr std::string_view meant = "\\'\"\a\b\f\n\r\t\v";
      if (const auto at = plain.find(c); at != std::string_view::npos) {
        out += meant[at];
      } else if (c == '\n') {
        continue;
      } else if (c >= '0' && c <= '7') {
        uint32_t code = 0;
        std::size_t n = 0;
        for (; n < 3 && i + n < text.size() && text[i + n] >= '0' && text[i + n] <= '7'; ++n)
          code = code * 8 + static_cast<uint32_t>(text[i + n] - '0');
        append_utf8(out, code);
        i += n - 1;
      } else if (c == 'x' || c == 'u' || c == 'U') {
        const std::size_t n = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        uint32_t code = 0;
        const std::string_view hex = text.substr(i + 1, n);
        const auto read = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
        if (hex.size() != n || read.ec != std::errc{} || read.ptr != hex.data() + n ||
            code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
          wrong(fmt::format("the escape \\{} needs {} digits of a character", c, n));
          return std::nullopt;
        }
        append_utf8(out, code);
        i += n;
      } else if (c == 'N') {
        wrong("characters by name, \\N{...}, are not known here");
        return std::nullopt;
      } else {
        out += '\\';
        out += c;
      }
    }
    return out;
  }

  std::string source_;
  std::size_t at_ = 0;
  uint32_t line_ = 1;
  bool line_starting_ = true;
  std::vector<token> out_;
  std::optional<failure> trouble_;
};

}  // namespace

result<std::vector<token>> split_template(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      text += source[i];
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return lexer(std::move(text)).run();
}

}  // namespace bitnet::jinja
