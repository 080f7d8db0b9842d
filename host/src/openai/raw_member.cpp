#include "openai/raw_member.hpp"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

namespace bitnet::host::openai {
namespace {

// Walks through well-formed JSON. For other text the parts are wrong, but always inside it.
class walker {
 public:
  explicit walker(std::string_view text) : text_(text) {}

  // Skips blanks; if this character follows, skips it and returns true.
  bool takes(char wanted) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  std::string_view value() {
    skip_blanks();
    const std::size_t begin = at_;
    std::size_t depth = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        skip_string();
      } else {
        if (depth == 0 && ends_scalar(c)) break;
        depth += c == '{' || c == '[' ? 1 : 0;
        depth -= c == '}' || c == ']' ? 1 : 0;
        ++at_;
      }
      if (depth == 0 && ends_nested(text_[at_ - 1])) break;
    }
    return text_.substr(begin, at_ - begin);
  }

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
  static bool ends_scalar(char c) {
    return is_blank(c) || c == ',' || c == ':' || c == '}' || c == ']';
  }
  static bool ends_nested(char c) { return c == '}' || c == ']' || c == '"'; }

  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }
  void skip_string() {
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_)
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
    if (at_ < text_.size()) ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// `quoted`: a name with its quotes.
bool is_name(std::string_view quoted, std::string_view name) {
  if (quoted.find('\\') == std::string_view::npos)
    return quoted.size() == name.size() + 2 && quoted.substr(1, name.size()) == name;
  const auto plain = nlohmann::json::parse(quoted, nullptr, false);
  return plain.is_string() && plain.get_ref<const std::string&>() == name;
}

}  // namespace

std::string_view raw_member(std::string_view object, std::string_view name) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (object.starts_with(byte_order_mark)) object.remove_prefix(byte_order_mark.size());
  walker at(object);
  std::string_view found;
  if (!at.takes('{')) return found;
  do {
    const std::string_view key = at.value();
    if (!at.takes(':')) break;
    const std::string_view value = at.value();
    if (is_name(key, name)) found = value;
  } while (at.takes(','));
  return found;
}

std::vector<std::string_view> raw_elements(std::string_view array) {
  walker at(array);
  std::vector<std::string_view> found;
  if (!at.takes('[') || at.takes(']')) return found;
  do found.push_back(at.value());
  while (at.takes(','));
  return found;
}

}  // namespace bitnet::host::openai
