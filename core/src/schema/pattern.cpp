#include "schema/pattern.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/utf8.hpp"
#include "grammar/character_classes.hpp"

namespace bitnet::schema {
namespace {

using grammar::character_class;
using grammar::class_of;
using kind = pattern_node::kind;

constexpr uint32_t endless = pattern_node::endless;
constexpr uint32_t deepest_groups = 100;

const character_class digits{{'0', '9'}};
const character_class word{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const character_class blanks{{0x09, 0x0D},     {0x20, 0x20},     {0xA0, 0xA0},     {0x1680, 0x1680},
                             {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                             {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
const character_class line_ends{{0x0A, 0x0A}, {0x0D, 0x0D}, {0x2028, 0x2029}};

class parser {
 public:
  parser(std::u32string text, const std::string& where, faults& to)
      : text_(std::move(text)), where_(where), to_(to) {}

  pattern_tree run() {
    const uint32_t root = either(0);
    if (at_ < text_.size()) wrong("a ')' closes no group; write \\) for the character");
    if (to_.any()) return {};
    pattern_node last = out_[root];
    out_.push_back(std::move(last));
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool at(char32_t c) const { return at_ < text_.size() && text_[at_] == c; }
  bool skip(char32_t c) {
    const bool found = at(c);
    if (found) ++at_;
    return found;
  }
  bool skip(std::u32string_view word_) {
    const bool found = std::u32string_view(text_).substr(at_).starts_with(word_);
    if (found) at_ += word_.size();
    return found;
  }
  void wrong(const std::string& what) {
    to_.wrong(where_, fmt::format("character {} of the pattern: {}", at_ + 1, what));
    at_ = text_.size();
  }
  void unsupported(const std::string& what) {
    to_.unsupported(where_, fmt::format("character {} of the pattern: {}", at_ + 1, what));
    at_ = text_.size();
  }
  uint32_t add(pattern_node one) {
    to_.spend(1);
    out_.push_back(std::move(one));
    return static_cast<uint32_t>(out_.size() - 1);
  }

  uint32_t either(uint32_t depth) {  // NOLINT(misc-no-recursion): as deep as the groups, bounded
    pattern_node one{.what = kind::either};
    do one.parts.push_back(join(depth));
    while (skip(U'|'));
    return one.parts.size() == 1 ? one.parts[0] : add(std::move(one));
  }

  uint32_t join(uint32_t depth) {  // NOLINT(misc-no-recursion): see either
    pattern_node one{.what = kind::join};
    while (at_ < text_.size() && !at(U'|') && !at(U')')) one.parts.push_back(repeated(depth));
    return add(std::move(one));
  }

  uint32_t repeated(uint32_t depth) {  // NOLINT(misc-no-recursion): see either
    uint32_t out = item(depth);
    pattern_node one{.what = kind::repeat, .parts = {out}, .least = 0, .most = endless};
    if (skip(U'+'))
      one.least = 1;
    else if (skip(U'?'))
      one.most = 1;
    else if (at(U'{'))
      counts(one);
    else if (!skip(U'*'))
      return out;
    if (out < out_.size() && (out_[out].what == kind::begin || out_[out].what == kind::end))
      wrong("an anchor cannot be repeated");
    skip(U'?');  // lazy: the same texts
    if (at(U'*') || at(U'+') || at(U'?') || at(U'{')) wrong("there is nothing to repeat");
    return add(std::move(one));
  }

  // {m}, {m,} or {m,n}
  void counts(pattern_node& of) {
    ++at_;
    const auto number = [&]() -> uint32_t {
      uint32_t n = 0;
      if (!(at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'))
        wrong(
            "expected a number of repetitions, as in {2}, {2,} or {2,5}; write \\{ for the brace");
      for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
        n = std::min<uint32_t>(n * 10 + (text_[at_] - '0'), most_repetitions + 1);
      return n;
    };
    of.least = of.most = number();
    if (skip(U',')) of.most = at(U'}') ? endless : number();
    if (to_.any()) return;
    if (!skip(U'}')) return wrong("expected ',' or '}' of a repetition");
    if (of.most < of.least) return wrong("the repetition has its lower number behind the other");
    if (std::max(of.least, of.most == endless ? 0 : of.most) > most_repetitions)
      unsupported(fmt::format("at most {} repetitions are possible", most_repetitions));
  }

  uint32_t item(uint32_t depth) {  // NOLINT(misc-no-recursion): see either
    if (at(U'(')) return group(depth);
    if (skip(U'^')) return add({.what = kind::begin});
    if (skip(U'$')) return add({.what = kind::end});
    if (skip(U'.')) return set(class_of(line_ends, true));
    if (at(U'[')) return set(brackets());
    if (at(U'\\')) return set(escape());
    for (const char c : {'*', '+', '?', '{', '}', ']'})
      if (at(static_cast<char32_t>(c))) {
        wrong(fmt::format("a '{0}' has no meaning here; write \\{0} for the character", c));
        return 0;
      }
    const char32_t c = text_[at_++];
    return set({{c, c}});
  }

  uint32_t set(character_class of) {
    if (of.empty() && !to_.any()) wrong("the class before has no character");
    return add({.what = kind::set, .set = std::move(of)});
  }

  uint32_t group(uint32_t depth) {  // NOLINT(misc-no-recursion): see either
    if (depth == deepest_groups) {
      unsupported(fmt::format("groups lie more than {} deep in each other", deepest_groups));
      return 0;
    }
    for (const std::u32string_view look : {U"(?=", U"(?!", U"(?<=", U"(?<!"})
      if (std::u32string_view(text_).substr(at_).starts_with(look)) {
        unsupported("lookahead and lookbehind are not supported");
        return 0;
      }
    ++at_;
    if (skip(U"?<")) {
      while (at_ < text_.size() && !at(U'>')) ++at_;
      if (!skip(U'>')) wrong("the name of the group has no end; expected '>'");
    } else if (at(U'?') && !skip(U"?:")) {
      unsupported("this kind of group is not supported; (...), (?:...) and (?<name>...) are");
    }
    const uint32_t out = either(depth + 1);
    if (!to_.any() && !skip(U')')) wrong("expected ')' for a '(' before");
    return out;
  }

  character_class brackets() {
    ++at_;
    const bool negated = skip(U'^');
    character_class all;
    while (!at(U']') && !to_.any()) {
      if (at_ >= text_.size()) {
        wrong("the class has no end; expected ']'");
        return {};
      }
      const character_class one = of_class();
      character_class last = one;
      const bool is_range = at(U'-') && at_ + 1 < text_.size() && text_[at_ + 1] != U']';
      if (is_range) {
        ++at_;
        last = of_class();
        const auto single = [](const character_class& c) {
          return c.size() == 1 && c[0].first == c[0].last;
        };
        if (to_.any()) return {};
        if (!single(one) || !single(last) || last[0].first < one[0].first) {
          wrong("a range needs two characters, the lower one first; write \\- for the character");
          return {};
        }
        all.push_back({one[0].first, last[0].first});
      } else {
        all.insert(all.end(), one.begin(), one.end());
      }
    }
    skip(U']');
    return to_.any() ? character_class{} : class_of(std::move(all), negated);
  }

  character_class of_class() {
    if (at_ >= text_.size()) {
      wrong("the class has no end; expected ']'");
      return {};
    }
    if (at(U'\\')) {
      if (at_ + 1 < text_.size() && text_[at_ + 1] == U'b') {
        at_ += 2;
        return {{0x08, 0x08}};
      }
      return escape();
    }
    const char32_t c = text_[at_++];
    return {{c, c}};
  }

  character_class escape() {
    ++at_;
    if (at_ >= text_.size()) {
      wrong("a backslash ends it; write \\\\ for the character");
      return {};
    }
    const char32_t c = text_[at_++];
    switch (c) {
      case 'd':
        return digits;
      case 'D':
        return class_of(digits, true);
      case 'w':
        return word;
      case 'W':
        return class_of(word, true);
      case 's':
        return blanks;
      case 'S':
        return class_of(blanks, true);
      case 't':
        return {{0x09, 0x09}};
      case 'n':
        return {{0x0A, 0x0A}};
      case 'v':
        return {{0x0B, 0x0B}};
      case 'f':
        return {{0x0C, 0x0C}};
      case 'r':
        return {{0x0D, 0x0D}};
      case 'x':
        return code(hex(2));
      case 'u':
        return code(unicode());
      default:
        break;
    }
    if (c == '0' && !(at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9')) return code(0);
    if (std::u32string_view(U"^$\\.*+?()[]{}|/-").contains(c)) return code(c);
    --at_;
    if (c == 'b' || c == 'B')
      unsupported("word boundaries are not supported");
    else if ((c >= '1' && c <= '9') || c == 'k')
      unsupported("references to groups are not supported");
    else if (c == 'p' || c == 'P' || c == 'c')
      unsupported("\\p, \\P and \\c are not supported; write the characters as a class");
    else
      wrong("this character has no meaning behind a backslash; write it without one");
    return {};
  }

  static character_class code(char32_t c) { return {{c, c}}; }

  char32_t hex(int n) {
    char32_t out = 0;
    for (int i = 0; i < n; ++i) {
      const char32_t c = at_ < text_.size() ? text_[at_] : 0;
      const char32_t lower = c | 0x20U;
      if (c >= '0' && c <= '9')
        out = out * 16 + (c - '0');
      else if (lower >= 'a' && lower <= 'f')
        out = out * 16 + (lower - 'a' + 10);
      else
        return wrong(fmt::format("expected {} hexadecimal digits", n)), 0;
      ++at_;
    }
    return out;
  }

  char32_t unicode() {
    char32_t out = 0;
    if (skip(U'{')) {
      const std::size_t begin = at_;
      while (at_ < text_.size() && !at(U'}') && at_ - begin < 6) out = out * 16 + hex(1);
      if (!skip(U'}') || at_ - begin < 2) wrong("expected 1 to 6 hexadecimal digits and '}'");
    } else {
      out = hex(4);
      if (out >= 0xD800 && out < 0xDC00 && skip(U"\\u")) {
        const char32_t low = hex(4);
        out =
            low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((out - 0xD800) << 10) + (low - 0xDC00) : out;
      }
    }
    if (out > grammar::last_character || (out >= 0xD800 && out < 0xE000))
      wrong("this number is no character of Unicode, or one half of a surrogate pair");
    return out;
  }

  std::u32string text_;
  std::size_t at_ = 0;
  const std::string& where_;
  faults& to_;
  pattern_tree out_;
};

}  // namespace

pattern_tree parse_pattern(std::string_view text, const std::string& where, faults& to) {
  return parser(characters_of(text), where, to).run();
}

text_automaton texts_of_pattern(std::string_view text, matching how, const std::string& where,
                                faults& to) {
  const pattern_tree tree = parse_pattern(text, where, to);
  return to.any() ? text_automaton{} : texts_of(tree, how, where, to);
}

}  // namespace bitnet::schema
