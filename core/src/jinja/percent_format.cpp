#include "jinja/percent_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/utf8.hpp"
#include "jinja/makers.hpp"
#include "jinja/operations.hpp"
#include "jinja/python_text.hpp"

namespace bitnet::jinja {
namespace {

using kind = value::kind;

// %(key)-08.3d
struct directive {
  bool left = false, plus = false, blank = false, alternative = false, zeros = false;
  std::optional<uint64_t> width;      // characters
  std::optional<uint64_t> precision;  // digits, or characters of a text
  char type = 0;

  [[nodiscard]] bool is_text() const { return type == 's' || type == 'r' || type == 'a'; }
  [[nodiscard]] bool has_prefix() const {
    return alternative && (type == 'o' || type == 'x' || type == 'X');
  }
};

// A converted value before padding: sign, then 0x, then the rest.
struct written {
  std::string sign, prefix, rest;
  marked_text text;  // used instead for texts
};

std::string ascii_only(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const character one = first_character(text);
    const auto code = static_cast<uint32_t>(one.code);
    out += code < 0x80      ? std::string(text.substr(0, 1))
           : code < 0x100   ? fmt::format("\\x{:02x}", code)
           : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                            : fmt::format("\\U{:08x}", code);
    text.remove_prefix(one.length);
  }
  return out;
}

class formatter {
 public:
  formatter(rendering& at, const marked_text& form, const value& values)
      : at_(at), form_(form), rest_(form.bytes()), values_(values), current_(values) {
    // Everything that Python can index by a key, except texts and tuples. It need not be used up.
    is_mapping_ = values.is(kind::dict) || values.is(kind::list) || values.is(kind::undefined);
    is_tuple_ = values.is(kind::tuple);
  }

  value run() {
    text_maker out(at_);
    while (at_.step()) {
      const auto percent = std::min(rest_.find('%'), rest_.size());
      if (!at_.scan(percent) || !out.add(form_, rest_.substr(0, percent))) return {};
      rest_.remove_prefix(percent);
      if (rest_.empty()) break;
      rest_.remove_prefix(1);
      if (rest_.starts_with('%')) {
        out.add(form_, rest_.substr(0, 1));
        take();
        continue;
      }
      directive d;
      if (!parse(d)) return {};
      const written w = converted(d);
      if (!at_.ok() || !write_in_width(out, d, w)) return {};
    }
    const bool left_over = is_tuple_ ? next_ < values_.items().size() : next_ == 0;
    if (left_over && !is_mapping_)
      return at_.wrong("not all values of % were used: it has more than its text has places for");
    return out.text();
  }

 private:
  // Returns the next character; 0 and an error at the end.
  char take() {
    if (rest_.empty()) {
      at_.wrong("a place that begins with % has no end");
      return 0;
    }
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }

  value next_value() {
    const bool has = is_tuple_ ? next_ < values_.items().size() : next_ == 0;
    if (!has) return at_.wrong("% has fewer values than its text has places for");
    return is_tuple_ ? values_.items()[next_++] : (++next_, current_);
  }

  void take_key() {
    if (!is_mapping_) {
      at_.wrong(fmt::format("%(name) needs a dict, not a '{}'", type_name(values_)));
      return;
    }
    std::size_t length = 0;
    for (int open = 1; open > 0; ++length) {
      if (length == rest_.size()) {
        at_.wrong("%(name) has no end");
        return;
      }
      open += rest_[length] == '(' ? 1 : rest_[length] == ')' ? -1 : 0;
    }
    const value key = at_.scan(length) ? at_.copy(form_, rest_.substr(0, length - 1)) : value();
    rest_.remove_prefix(length);
    if (!at_.ok() || (values_.is(kind::dict) && !at_.look_up(values_.entries(), key))) return;
    const value* found = values_.is(kind::dict) ? values_.entries().find(key) : nullptr;
    if (found == nullptr) {
      at_.wrong(fmt::format("% has no value for '{}'", key.text().substr(0, 80)));
      return;
    }
    current_ = *found;
    is_tuple_ = false;
    next_ = 0;
  }

  // Reads digits, or a * that takes a value; nullopt if neither. Passes on the next character.
  std::optional<int64_t> number(char& c) {
    if (c == '*') {
      const value v = next_value();
      if (!at_.ok()) return 0;
      if (!v.is_whole()) {
        at_.wrong(fmt::format("* in a place of % needs an integer, not a '{}'", type_name(v)));
        return 0;
      }
      c = take();
      return v.whole();
    }
    if (c < '0' || c > '9') return std::nullopt;
    int64_t out = 0;
    for (; c >= '0' && c <= '9'; c = take())
      if (__builtin_mul_overflow(out, 10, &out) || __builtin_add_overflow(out, c - '0', &out)) {
        at_.wrong("a width or precision of % is too large");
        return 0;
      }
    return out;
  }

  bool parse(directive& d) {
    char c = take();
    if (c == '(') {
      take_key();
      if (!at_.ok()) return false;
      c = take();
    }
    for (;; c = take()) {
      if (c == '-')
        d.left = true;
      else if (c == '+')
        d.plus = true;
      else if (c == ' ')
        d.blank = true;
      else if (c == '#')
        d.alternative = true;
      else if (c == '0')
        d.zeros = true;
      else
        break;
    }
    if (const auto width = number(c)) {
      if (*width == INT64_MIN) return (at_.wrong("a width of % is too large"), false);
      d.left = d.left || *width < 0;
      d.width = static_cast<uint64_t>(std::abs(*width));
    }
    if (c == '.') {
      c = take();
      d.precision = static_cast<uint64_t>(std::max<int64_t>(number(c).value_or(0), 0));
      if (*d.precision > INT32_MAX) return (at_.wrong("a precision of % is too large"), false);
    }
    if (c == 'h' || c == 'l' || c == 'L') c = take();
    d.type = c;
    return at_.ok();
  }

  written converted(const directive& d) {
    switch (d.type) {
      case 's':
      case 'r':
      case 'a':
        return text(d, next_value());
      case 'c':
        return one_character(next_value());
      case 'd':
      case 'i':
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        return whole(d, next_value());
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        return real(d, next_value());
      default:
        at_.wrong("a place of % ends in none of s r a c d i u o x X e E f F g G");
        return {};
    }
  }

  written text(const directive& d, const value& v) {
    marked_text out = d.type == 's' ? str(at_, v) : repr(at_, v);
    if (d.type == 'a') {
      // A character of two bytes becomes six; the text may have grown to twice its length.
      if (!at_.read(out.size()) || !at_.room(8 * out.size() + 32)) return {};
      out = marked_text(ascii_only(out.bytes()), out.all());
    }
    if (d.precision && *d.precision < out.size()) {
      if (!at_.read(out.size()) || !at_.room(2 * out.size() + 64)) return {};
      out = out.part(0, bytes_of(out.bytes(), *d.precision));
    }
    return {{}, {}, {}, std::move(out)};
  }

  written one_character(const value& v) {
    std::string character;
    constexpr int64_t last = 0x10FFFF;
    const auto is_half = [](int64_t code) { return code >= 0xD800 && code <= 0xDFFF; };
    if (v.is(kind::text) && bytes_of(v.text(), 1) == v.text().size())
      return {{}, {}, {}, v.marked()};
    if (v.is_whole() && v.whole() >= 0 && v.whole() <= last && !is_half(v.whole()))
      append_utf8(character, static_cast<char32_t>(v.whole()));
    else
      at_.wrong("%c needs a text of one character, or the number of one");
    return {{}, {}, {}, marked_text(std::move(character), origin::message)};
  }

  written whole(const directive& d, const value& v) {
    const bool of_bits = d.type == 'o' || d.type == 'x' || d.type == 'X';
    constexpr double past_the_largest = 0x1p63;
    int64_t i = 0;
    if (v.is_whole()) {
      i = v.whole();
    } else if (v.is(kind::real) && !of_bits && std::abs(v.number()) < past_the_largest) {
      i = static_cast<int64_t>(v.number());
    } else {
      at_.wrong(v.is(kind::undefined)
                    ? v.why_undefined()
                    : fmt::format("%{} needs an integer, not this '{}'", d.type, type_name(v)));
      return {};
    }
    const uint64_t size = i < 0 ? uint64_t{0} - static_cast<uint64_t>(i) : static_cast<uint64_t>(i);
    written out{i < 0 ? "-" : "",
                "",
                d.type == 'o'   ? fmt::format("{:o}", size)
                : d.type == 'x' ? fmt::format("{:x}", size)
                : d.type == 'X' ? fmt::format("{:X}", size)
                                : std::to_string(size),
                {}};
    if (d.has_prefix()) out.prefix = {'0', d.type};
    if (d.precision && *d.precision > out.rest.size() && at_.room(2 * *d.precision + 64))
      out.rest.insert(0, *d.precision - out.rest.size(), '0');
    return out;
  }

  written real(const directive& d, const value& v) {
    if (!v.is_number()) {
      at_.wrong(v.is(kind::undefined)
                    ? v.why_undefined()
                    : fmt::format("%{} needs a number, not a '{}'", d.type, type_name(v)));
      return {};
    }
    constexpr uint64_t most_digits_before_the_point = 310;
    const uint64_t digits = d.precision.value_or(6);
    // fmt's buffer, which grows, and then the text.
    if (!at_.room(4 * (digits + most_digits_before_the_point)) || !at_.step(8)) return {};
    const double x = v.number();
    const bool upper = d.type == 'E' || d.type == 'F' || d.type == 'G';
    std::string out =
        std::isnan(x) ? (upper ? "NAN" : "nan")
        : std::isinf(x)
            ? (upper ? "INF" : "inf")
            : fmt::format(fmt::runtime(fmt::format("{{:{}.{}{}}}", d.alternative ? "#" : "", digits,
                                                   d.type)),
                          std::abs(x));
    return {std::signbit(x) && !std::isnan(x) ? "-" : "", "", std::move(out), {}};
  }

  bool write_in_width(text_maker& out, const directive& d, const written& w) {
    if (d.is_text() || d.type == 'c') return write_text_in_width(out, d, w.text);
    const bool signed_too = w.sign.empty() && (d.plus || d.blank);
    const std::string_view sign = !signed_too ? std::string_view(w.sign) : d.plus ? "+" : " ";
    const uint64_t size = sign.size() + w.prefix.size() + w.rest.size();
    const uint64_t missing = std::max(d.width.value_or(0), size) - size;
    const bool zeros = d.zeros && !d.left;
    constexpr origin of = origin::message;
    return out.fill(d.left || zeros ? 0 : missing, ' ', of) && out.add(sign, of) &&
           out.add(w.prefix, of) && out.fill(zeros ? missing : 0, '0', of) && out.add(w.rest, of) &&
           out.fill(d.left ? missing : 0, ' ', of);
  }

  bool write_text_in_width(text_maker& out, const directive& d, const marked_text& text) {
    if (!d.width) return out.add(text);
    if (!at_.read(text.size())) return false;
    const uint64_t size = count_characters(text.bytes());
    const uint64_t missing = std::max(*d.width, size) - size;
    return out.fill(d.left ? 0 : missing, ' ', origin::own) && out.add(text) &&
           out.fill(d.left ? missing : 0, ' ', origin::own);
  }

  rendering& at_;
  const marked_text& form_;
  std::string_view rest_;  // of the format
  const value& values_;
  value current_;  // if the values are no tuple
  bool is_mapping_ = false;
  bool is_tuple_ = false;
  std::size_t next_ = 0;  // number of values used
};

}  // namespace

value percent_formatted(rendering& at, const marked_text& form, const value& values) {
  return formatter(at, form, values).run();
}

}  // namespace bitnet::jinja
