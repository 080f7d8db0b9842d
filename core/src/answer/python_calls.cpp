#include <fmt/format.h>

#include <algorithm>

#include "answer/bodies.hpp"
#include "base/utf8.hpp"
#include "json/raw.hpp"
#include "json/reading.hpp"

namespace bitnet::answer {
namespace {

constexpr std::size_t deepest = 32;  // nested brackets: each level takes stack

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Reads literals and calls of Python, and writes JSON. Each function advances behind what it read.
// The first error is kept, and then all functions return "nothing".
class python_reader {
 public:
  python_reader(std::string_view text, const tools& known) : text_(text), known_(known) {}

  calls_or_reason run() {
    skip_blanks();
    const bool in_list = take('[');
    std::vector<call> out;
    for (skip_blanks(); !at_end() && ok(); skip_separators()) {
      if (in_list && take(']')) break;
      out.push_back(one_call());
    }
    skip_blanks();
    if (!at_end()) wrong("the end");
    if (out.empty()) wrong("a call");
    if (!ok()) return std::unexpected(wrong_);
    return out;
  }

 private:
  [[nodiscard]] bool ok() const { return wrong_.empty(); }
  [[nodiscard]] bool at_end() const { return at_ >= text_.size(); }
  [[nodiscard]] char now() const { return at_end() ? '\0' : text_[at_]; }
  void wrong(std::string_view expected) {
    if (ok()) wrong_ = fmt::format("expected {} at byte {} of the call", expected, at_);
    at_ = text_.size();
  }
  bool take(char c) {
    if (now() != c) return false;
    ++at_;
    return true;
  }
  void need(char c) {
    skip_blanks();
    if (!take(c)) wrong(fmt::format("'{}'", c));
  }
  void skip_blanks() {
    while (!at_end() && std::string_view(" \t\r\n").find(now()) != std::string_view::npos) ++at_;
  }
  void skip_separators() {
    while (!at_end() && std::string_view(" \t\r\n,;").find(now()) != std::string_view::npos) ++at_;
  }

  std::string word() {
    const std::size_t begin = at_;
    while (is_letter(now()) || (at_ > begin && (is_digit(now()) || now() == '.' || now() == '-')))
      ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  call one_call() {
    call out{word(), "{"};
    if (out.name.empty()) wrong("the name of a function");
    // brave_search.call(...): the form of Llama 3 for its built-in tools.
    constexpr std::string_view method = ".call";
    if (out.name.ends_with(method) && find(known_, out.name) == nullptr)
      out.name.resize(out.name.size() - method.size());
    need('(');
    std::size_t position = 0;
    for (skip_blanks(); ok() && now() != ')'; skip_blanks()) {
      if (out.arguments.size() > 1) out.arguments += ", ";
      out.arguments += argument(find(known_, out.name), position++);
      skip_blanks();
      if (!take(',') && now() != ')') wrong("',' or ')'");
    }
    need(')');
    out.arguments += "}";
    return out;
  }

  std::string argument(const tool* described, std::size_t position) {
    const std::size_t before = at_;
    const std::string key = word();
    skip_blanks();
    if (!key.empty() && take('=')) return json::quoted(key) + ": " + literal(0);
    at_ = before;
    if (described == nullptr || position >= described->parameters.size()) {
      wrong("key=value");
      return "";
    }
    return json::quoted(described->parameters[position].name) + ": " + literal(0);
  }

  std::string literal(std::size_t depth) {
    skip_blanks();
    if (depth > deepest) {
      wrong("fewer brackets within each other");
      return "";
    }
    if (now() == '"' || now() == '\'') return strings();
    if (take('[')) return items(']', depth);
    if (take('(')) return items(')', depth);
    if (take('{')) return dict(depth);
    if (is_digit(now()) || now() == '-' || now() == '+' || now() == '.') return number();
    const std::string name = word();
    if (name == "True" || name == "true") return "true";
    if (name == "False" || name == "false") return "false";
    if (name == "None" || name == "null") return "null";
    wrong("a value");
    return "";
  }

  std::string items(char end, std::size_t depth) {
    std::string out = "[";
    for (skip_blanks(); ok() && now() != end; skip_blanks()) {
      if (out.size() > 1) out += ", ";
      out += literal(depth + 1);
      skip_blanks();
      if (!take(',') && now() != end) wrong(fmt::format("',' or '{}'", end));
    }
    need(end);
    return out + "]";
  }

  std::string dict(std::size_t depth) {
    std::string out = "{";
    for (skip_blanks(); ok() && now() != '}'; skip_blanks()) {
      if (out.size() > 1) out += ", ";
      const std::string key = literal(depth + 1);
      out += key.starts_with('"') ? key : json::quoted(key);
      need(':');
      out += ": " + literal(depth + 1);
      skip_blanks();
      if (!take(',') && now() != '}') wrong("',' or '}'");
    }
    need('}');
    return out + "}";
  }

  // Python's number forms that JSON lacks: +1, .5, 1., 1_000.
  std::string number() {
    std::string out;
    if (!take('+') && take('-')) out = "-";
    if (now() == '.') out += '0';
    while (is_digit(now()) ||
           (now() != '\0' && std::string_view("._eE+-").find(now()) != std::string_view::npos)) {
      if (now() != '_') out += now();
      const bool point = take('.');
      if (!point) ++at_;
      if (point && !is_digit(now())) out += '0';
    }
    if (!json::is_whole(out)) wrong("a number");
    return out;
  }

  // Adjacent strings are one text.
  std::string strings() {
    std::string out;
    while (ok() && (now() == '"' || now() == '\'')) {
      one_string(out);
      skip_blanks();
    }
    return json::quoted(out);
  }

  void one_string(std::string& out) {
    const char mark = now();
    const std::string triple(3, mark);
    const bool is_long = text_.substr(at_).starts_with(triple);
    at_ += is_long ? 3 : 1;
    while (!at_end()) {
      if (is_long ? text_.substr(at_).starts_with(triple) : now() == mark) {
        at_ += is_long ? 3 : 1;
        return;
      }
      if (now() == '\\') {
        escape(out);
      } else {
        out += now();
        ++at_;
      }
    }
    wrong("the end of a text");
  }

  void escape(std::string& out) {
    ++at_;
    constexpr std::string_view names = "nrtbfav0\\'\"/";
    constexpr std::string_view bytes("\n\r\t\b\f\a\v\0\\'\"/", 12);
    const char c = now();
    ++at_;
    if (const auto known = names.find(c); known != std::string_view::npos && c != '\0')
      out += bytes[known];
    else if (c == 'x' || c == 'u' || c == 'U')
      code_point(out, c == 'x' ? 2 : c == 'u' ? 4 : 8);
    else if (c != '\n')  // a backslash before it continues the line
      out.append("\\").append(1, c);
  }

  void code_point(std::string& out, std::size_t digits) {
    uint32_t code = hexadecimal(digits);
    const bool high = code >= 0xD800 && code < 0xDC00;
    if (high && text_.substr(at_).starts_with("\\u")) {
      at_ += 2;
      const uint32_t low = hexadecimal(4);
      if (low < 0xDC00 || low > 0xDFFF) return wrong("a low surrogate");
      code = 0x10000 + ((code - 0xD800) << 10U) + (low - 0xDC00);
    } else if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
      return wrong("a character");
    }
    append_utf8(out, static_cast<char32_t>(code));
  }

  uint32_t hexadecimal(std::size_t digits) {
    uint32_t out = 0;
    for (std::size_t i = 0; i < digits; ++i, ++at_) {
      const char c = now();
      const auto value =
          std::string_view("0123456789abcdef").find(c >= 'A' && c <= 'F' ? c + 32 : c);
      if (c == '\0' || value == std::string_view::npos) {
        wrong("a hexadecimal digit");
        return 0;
      }
      out = out * 16 + static_cast<uint32_t>(value);
    }
    return out;
  }

  std::string_view text_;
  const tools& known_;
  std::size_t at_ = 0;
  std::string wrong_;
};

// Converts JSON to Python: words such as true differ, texts and numbers are the same.
std::string python_literal(std::string_view json_text) {
  std::string out;
  bool in_string = false;
  for (std::size_t i = 0; i < json_text.size(); ++i) {
    const char c = json_text[i];
    if (in_string) {
      out += c;
      if (c == '\\' && i + 1 < json_text.size()) out += json_text[++i];
      in_string = c != '"';
      continue;
    }
    in_string = c == '"';
    const auto rest = json_text.substr(i);
    if (rest.starts_with("true") || rest.starts_with("null")) {
      out += c == 't' ? "True" : "None";
      i += 3;
    } else if (rest.starts_with("false")) {
      out += "False";
      i += 4;
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

calls_or_reason read_python_calls(std::string_view body, const tools& known) {
  return python_reader(body, known).run();
}

schema::notation python_notation(std::string_view never) {
  return {.null = "None",
          .yes = "True",
          .no = "False",
          .never = {never},
          .arguments = schema::argument_signs{.before_value = "=",
                                              .between = ", ",
                                              .names = "[a-zA-Z_][a-zA-Z0-9_]{0,63}",
                                              .unlisted = true}};
}

std::string python_call(const call& one) {
  std::string out = one.name + "(";
  bool first = true;
  for (const auto& [name, content] : json::members_of(one.arguments)) {
    if (!first) out += ", ";
    first = false;
    out += name + "=" + python_literal(content);
  }
  return out + ")";
}

}  // namespace bitnet::answer
