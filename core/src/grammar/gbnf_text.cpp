#include "grammar/gbnf_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace bitnet::grammar {
namespace {

constexpr std::string_view meant_in_literals = "\"\\";
constexpr std::string_view meant_in_classes = "[]\\-^";

// Printable ASCII is written as it is, other characters as numbers: none ends a line or combines
// with another.
void add_character(std::string& to, char32_t c, std::string_view meant) {
  if (c >= 0x20 && c < 0x7F) {
    if (meant.find(static_cast<char>(c)) != std::string_view::npos) to += '\\';
    to += static_cast<char>(c);
  } else if (c < 0x100) {
    fmt::format_to(std::back_inserter(to), "\\x{:02x}", static_cast<uint32_t>(c));
  } else if (c < 0x10000) {
    fmt::format_to(std::back_inserter(to), "\\u{:04x}", static_cast<uint32_t>(c));
  } else {
    fmt::format_to(std::back_inserter(to), "\\U{:08x}", static_cast<uint32_t>(c));
  }
}

bool is_one_character(const character_class& of) {
  return of.size() == 1 && of.front().first == of.front().last;
}

void add_class(std::string& to, const character_class& of) {
  to += '[';
  for (const code_range& r : of) {
    add_character(to, r.first, meant_in_classes);
    if (r.first == r.last) continue;
    to += '-';
    add_character(to, r.last, meant_in_classes);
  }
  to += ']';
}

class gbnf_writer {
 public:
  gbnf_writer(const rule_set& of, std::string_view name) : of_(of), name_(name) {}

  result<std::string> run() {
    for (uint32_t r = 0; r < of_.rules.size(); ++r) {
      add_name(r);
      out_ += " ::= ";
      bool first = true;
      for (const uint32_t start : of_.rules[r].starts) {
        if (!first) out_ += " | ";
        first = false;
        add_alternative(&of_.elements[start]);
        if (out_.size() > longest_grammar)
          return fail(BITNET_UNSUPPORTED,
                      fmt::format("the grammar has more than {} bytes as a text; make lengths, "
                                  "counts and lists smaller",
                                  longest_grammar));
      }
      out_ += '\n';
    }
    return std::move(out_);
  }

 private:
  void add_name(uint32_t rule) {
    out_ += name_;
    if (rule != of_.root) fmt::format_to(std::back_inserter(out_), "-{}", rule);
  }

  // Neighbouring single characters become one literal.
  void add_alternative(const element* e) {
    if (e->what == element::kind::end) out_ += "\"\"";
    bool in_literal = false;
    for (bool first = true; e->what != element::kind::end; ++e, first = false) {
      const bool letter =
          e->what == element::kind::character && is_one_character(of_.classes[e->index]);
      if (in_literal && !letter) out_ += '"';
      if (!first && !(in_literal && letter)) out_ += ' ';
      if (letter && !in_literal) out_ += '"';
      in_literal = letter;
      if (letter)
        add_character(out_, of_.classes[e->index].front().first, meant_in_literals);
      else if (e->what == element::kind::character)
        add_class(out_, of_.classes[e->index]);
      else
        add_name(e->index);
    }
    if (in_literal) out_ += '"';
  }

  const rule_set& of_;
  const std::string_view name_;
  std::string out_;
};

}  // namespace

result<std::string> as_gbnf(const rule_set& of, std::string_view name) {
  return gbnf_writer(of, name).run();
}

}  // namespace bitnet::grammar
