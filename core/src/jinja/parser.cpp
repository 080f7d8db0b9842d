#include "jinja/parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "jinja/expression_parser.hpp"

namespace bitnet::jinja {
namespace {

// Parses statements: text, output, and tags with their bodies.
class parser : private expression_parser {
 public:
  using expression_parser::expression_parser;

  result<body> run() {
    body all = statements({});
    if (const auto& first = trouble()) return std::unexpected(*first);
    return all;
  }

 private:
  static bool is_any(const token& t, std::initializer_list<std::string_view> words) {
    return std::ranges::any_of(words, [&](std::string_view w) { return is_word(t, w); });
  }

  // Parses until a tag that begins with one of `ends`, which becomes the current token; with none,
  // to the end of the template.
  body statements(std::initializer_list<std::string_view> ends) {
    const level deeper(*this);
    body out;
    for (;;) {
      const token one = now();
      if (one.what == kind::end) {
        if (ends.size() != 0) {
          wrong(
              fmt::format("expected {{% {} %}}, found the end of the template", *(ends.end() - 1)));
        }
        return out;
      }
      take();
      if (one.what == kind::data) {
        statement text{};
        text.what = statement::kind::text;
        text.line = one.line;
        text.text = marked_text(one.content, origin::own);
        out.push_back(std::move(text));
      } else if (one.what == kind::variable_begin) {
        statement written{};
        written.what = statement::kind::output;
        written.line = one.line;
        written.expressions.push_back(tuple(false));
        expect(kind::variable_end, "}}");
        out.push_back(std::move(written));
      } else {  // block_begin
        if (is_any(now(), ends)) return out;
        out.push_back(tag());
        expect(kind::block_end, "%}");
      }
    }
  }

  statement tag() {
    const token word = now();
    const std::string name = expect_name();
    statement out{};
    out.line = word.line;
    if (name == "if") {
      branch(out);
    } else if (name == "for") {
      loop(out);
    } else if (name == "set") {
      assign(out);
    } else if (name == "macro") {
      define(out);
    } else if (name == "call") {
      call_block(out);
    } else if (name == "filter") {
      out.what = statement::kind::filter;
      out.expressions.push_back(filter_chain(one_filter(nullptr)));
      content(out, "endfilter");
    } else if (name == "with") {
      with(out);
    } else if (name == "generation") {
      out.what = statement::kind::scope;
      content(out, "endgeneration");
    } else if (name == "break" || name == "continue") {
      out.what = name == "break" ? statement::kind::leave : statement::kind::next;
      if (loops_ == 0) wrong_at(word.line, fmt::format("{{% {} %}} stands in no loop", name));
    } else {
      wrong_at(word.line,
               fmt::format("the tag {{% {} %}} is not known here", name.substr(0, longest_quote)));
    }
    return out;
  }

  // Parses the body of a tag and its end.
  void content(statement& of, std::string_view end) {
    expect(kind::block_end, "%}");
    of.bodies.push_back(statements({end}));
    take();
  }

  void branch(statement& out) {
    out.what = statement::kind::branch;
    for (;;) {
      out.expressions.push_back(tuple(false));
      expect(kind::block_end, "%}");
      out.bodies.push_back(statements({"elif", "else", "endif"}));
      const token end = take();
      if (is_word(end, "elif")) continue;
      if (is_word(end, "else")) content(out, "endif");
      return;
    }
  }

  void loop(statement& out) {
    out.what = statement::kind::loop;
    out.targets.push_back(targets(false));
    if (!skip_word("in")) wrong(fmt::format("expected 'in', found {}", describe(now())));
    out.expressions.push_back(loop_source());
    out.expressions.push_back(skip_word("if") ? conditional() : nullptr);
    if (at_word("recursive")) wrong("recursive loops are not known here");
    expect(kind::block_end, "%}");
    ++loops_;
    out.bodies.push_back(statements({"else", "endfor"}));
    --loops_;
    if (is_word(take(), "else")) content(out, "endfor");
  }

  // Like tuple(), but `if` belongs to the loop.
  expression_ptr loop_source() {
    const uint32_t line = now().line;
    auto first = either();
    if (!at_sign(",")) return first;
    auto out = make(form::tuple, line);
    add_part(*out, std::move(first));
    while (skip_sign(",")) {
      if (at(kind::block_end) || at_word("if")) break;
      add_part(*out, either());
    }
    return out;
  }

  target one_target(bool with_attributes) {
    const level deeper(*this);
    if (skip_sign("(")) {
      target out = targets(with_attributes);
      expect_sign(")");
      return out;
    }
    target out;
    const token word = now();
    out.name = expect_name();
    constexpr std::array<std::string_view, 6> reserved = {"true", "false", "none",
                                                          "True", "False", "None"};
    if (std::ranges::find(reserved, out.name) != reserved.end())
      wrong_at(word.line, fmt::format("nothing can be assigned to '{}'", out.name));
    if (with_attributes && skip_sign(".")) out.attribute = expect_name();
    return out;
  }

  target targets(bool with_attributes) {
    target first = one_target(with_attributes);
    if (!at_sign(",")) return first;
    target all;
    all.parts.push_back(std::move(first));
    while (skip_sign(",")) {
      if (!at(kind::name) && !at_sign("(")) break;
      if (at_word("in")) break;
      all.parts.push_back(one_target(with_attributes));
    }
    return all;
  }

  void assign(statement& out) {
    out.targets.push_back(targets(true));
    if (skip_sign("=")) {
      out.what = statement::kind::assign;
      out.expressions.push_back(tuple(false));
      return;
    }
    out.what = statement::kind::assign_block;
    out.expressions.push_back(at_sign("|") ? filter_chain(nullptr) : nullptr);
    content(out, "endset");
  }

  void parameters(macro_syntax& of) {
    expect_sign("(");
    while (ok() && !at_sign(")")) {
      parameter one{expect_name(), {}};
      if (skip_sign("="))
        one.otherwise = conditional();
      else if (!of.parameters.empty() && of.parameters.back().otherwise)
        wrong(fmt::format("the parameter '{}' without a default stands behind one with",
                          one.name.substr(0, longest_quote)));
      of.names.insert(one.name);
      of.parameters.push_back(std::move(one));
      if (!at_sign(")")) expect_sign(",");
    }
    expect_sign(")");
  }

  void macro_body(macro_syntax& of, std::string_view end) {
    expect(kind::block_end, "%}");
    const uint32_t outer_loops = std::exchange(loops_, 0);
    macro_syntax* const outer = enter(&of);
    of.content = std::make_unique<body>(statements({end}));
    enter(outer);
    loops_ = outer_loops;
    take();
  }

  void define(statement& out) {
    out.what = statement::kind::define;
    auto macro = std::make_shared<macro_syntax>();
    macro->name = expect_name();
    parameters(*macro);
    macro_body(*macro, "endmacro");
    out.macro = std::move(macro);
  }

  void call_block(statement& out) {
    out.what = statement::kind::call;
    auto caller = std::make_shared<macro_syntax>();
    caller->name = "caller";
    if (at_sign("(")) parameters(*caller);
    const uint32_t line = now().line;
    out.expressions.push_back(unary(true));
    if (ok() && out.expressions.back()->what != form::call)
      wrong_at(line, "expected a call behind {% call %}");
    macro_body(*caller, "endcall");
    out.macro = std::move(caller);
  }

  void with(statement& out) {
    out.what = statement::kind::with;
    while (ok() && !at(kind::block_end)) {
      out.targets.push_back(one_target(false));
      expect_sign("=");
      out.expressions.push_back(conditional());
      if (!at(kind::block_end)) expect_sign(",");
    }
    content(out, "endwith");
  }

  uint32_t loops_ = 0;  // loops around the current tag in this macro
};

}  // namespace

result<body> parse_template(std::string_view source) {
  if (source.size() > longest_template)
    return bad_data(
        fmt::format("the template has {} bytes, and may have {}", source.size(), longest_template));
  auto tokens = split_template(source);
  if (!tokens) return std::unexpected(tokens.error());
  return parser(*std::move(tokens)).run();
}

}  // namespace bitnet::jinja
