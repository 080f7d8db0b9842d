#pragma once
// Random grammars, and a recogniser that is written from the meaning of grammars.

#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.hpp"

namespace bitnet::grammar::testing_support {

// A grammar as a tree: what is printed as GBNF, and what is matched by its meaning.
struct node {
  enum class kind : uint8_t { literal, characters, sequence, choice, repeat, rule } what;
  std::u32string text = {};                    // of a literal, or the characters of a class
  bool negated = false;                        // of a class
  std::vector<std::shared_ptr<node>> of = {};  // of sequence, choice and repeat
  int least = 0, most = 0;                     // of repeat; most -1: no end
  int rule = 0;
};
using tree = std::shared_ptr<node>;

inline const std::u32string letters = U"ab\u00e9\u4e2d\U0001F600";

class random_grammar {
 public:
  explicit random_grammar(uint32_t seed) : random_(seed) {
    // A rule may call later ones first, and earlier ones behind a character only.
    for (int i = 0; i < n_rules; ++i) rules.push_back(choice(3, i));
  }

  static constexpr int n_rules = 4;
  std::vector<tree> rules;

  [[nodiscard]] std::string text() const {
    std::string out;
    for (int i = 0; i < n_rules; ++i) out += name(i) + " ::= " + shown(*rules[i]) + "\n";
    return out;
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  static std::string name(int i) { return i == 0 ? "root" : "r" + std::to_string(i); }

  tree some(node one) { return std::make_shared<node>(std::move(one)); }

  tree choice(int size, int rule) {
    node one{.what = node::kind::choice};
    // The first alternative calls nothing that calls back: every rule derives a text.
    for (int i = 0, n = 1 + below(3); i < n; ++i) one.of.push_back(sequence(size, rule, i > 0));
    return some(one);
  }

  tree sequence(int size, int rule, bool calls_back) {
    node one{.what = node::kind::sequence};
    bool began = false;  // behind a character: earlier rules may be called
    for (int i = 0, n = 1 + below(3); i < n; ++i) {
      one.of.push_back(item(size, rule, began && calls_back));
      began = began || one.of.back()->what == node::kind::characters ||
              (one.of.back()->what == node::kind::literal && !one.of.back()->text.empty());
    }
    return some(one);
  }

  tree item(int size, int rule, bool any_rule) {
    const int kind = below(size > 0 ? 10 : 5);
    if (kind < 2) {
      node one{.what = node::kind::literal};
      for (int i = below(3); i > 0; --i)
        one.text += letters[below(static_cast<int>(letters.size()))];
      return some(one);
    }
    if (kind < 4) {
      node one{.what = node::kind::characters};
      for (int i = 1 + below(2); i > 0; --i)
        one.text += letters[below(static_cast<int>(letters.size()))];
      one.negated = below(3) == 0;
      return some(one);
    }
    if (kind == 4) {
      const int to = any_rule ? below(n_rules) : rule + 1 + below(n_rules);
      if (to >= n_rules) return some({.what = node::kind::literal, .text = U"a"});
      return some({.what = node::kind::rule, .rule = to});
    }
    if (kind < 7) return choice(size - 1, rule);
    node one{.what = node::kind::repeat};
    one.of = {below(2) == 0 ? choice(size - 1, rule) : item(0, rule, false)};
    one.least = below(3);
    one.most = below(2) == 0 ? -1 : one.least + below(3);
    return some(one);
  }

  static std::string escaped(const std::u32string& text) {
    std::string out;
    for (const char32_t c : text) append_utf8(out, c);
    return out;
  }

  static std::string shown(const node& n) {
    std::string out;
    switch (n.what) {
      case node::kind::literal:
        return "\"" + escaped(n.text) + "\"";
      case node::kind::characters:
        return (n.negated ? "[^" : "[") + escaped(n.text) + "]";
      case node::kind::rule:
        return name(n.rule);
      case node::kind::sequence:
        for (const tree& t : n.of) out += shown(*t) + " ";
        return out;
      case node::kind::choice:
        for (const tree& t : n.of) out += (out.empty() ? "(" : " | ") + shown(*t);
        return out + ")";
      case node::kind::repeat:
        if (n.least == 0 && n.most == -1) return shown(*n.of[0]) + "*";
        return shown(*n.of[0]) + "{" + std::to_string(n.least) + "," +
               (n.most == -1 ? "" : std::to_string(n.most)) + "}";
    }
    return out;
  }

  std::mt19937 random_;
};

// Where a part can end that begins at a place of the text, and whether it can still go on behind
// the end of the text. Sets of places, and nothing else.
class recogniser {
 public:
  recogniser(const std::vector<tree>& rules, std::u32string text)
      : rules_(rules), text_(std::move(text)) {}

  bool whole() { return ends(*rules_[0], 0).contains(text_.size()); }
  // Some text of the grammar begins with this one, and is longer or the same.
  bool beginning() {
    const bool is_whole = whole();
    return is_whole || goes_on_;
  }

 private:
  using places = std::set<std::size_t>;

  places ends(const node& n, std::size_t at) {
    const auto key = std::pair(&n, at);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    return known_[key] = find(n, at);
  }

  bool fits(const node& n, char32_t c) const {
    return (n.text.find(c) != std::u32string::npos) != n.negated;
  }

  places find(const node& n, std::size_t at) {
    switch (n.what) {
      case node::kind::rule:
        return ends(*rules_[n.rule], at);
      case node::kind::characters:
        if (at == text_.size()) goes_on_ = true;
        return at < text_.size() && fits(n, text_[at]) ? places{at + 1} : places{};
      case node::kind::literal:
        for (const char32_t c : n.text) {
          if (at == text_.size()) goes_on_ = true;
          if (at == text_.size() || text_[at] != c) return {};
          ++at;
        }
        return {at};
      case node::kind::choice: {
        places out;
        for (const tree& t : n.of) out.merge(places(ends(*t, at)));
        return out;
      }
      case node::kind::sequence: {
        places now{at};
        for (const tree& t : n.of) now = after(*t, now);
        return now;
      }
      case node::kind::repeat: {
        places out, now{at};
        const int enough = n.most < 0 ? n.least + static_cast<int>(text_.size()) + 1 : n.most;
        for (int i = 0; i <= enough; ++i) {
          if (i >= n.least) out.insert(now.begin(), now.end());
          if (i < enough) now = after(*n.of[0], now);
        }
        return out;
      }
    }
    return {};
  }

  places after(const node& n, const places& from) {
    places out;
    for (const std::size_t at : from) out.merge(ends(n, at));
    return out;
  }

  const std::vector<tree>& rules_;
  const std::u32string text_;
  std::map<std::pair<const node*, std::size_t>, places> known_;
  bool goes_on_ = false;
};

inline std::string utf8(const std::u32string& text) {
  std::string out;
  for (const char32_t c : text) append_utf8(out, c);
  return out;
}

}  // namespace bitnet::grammar::testing_support
