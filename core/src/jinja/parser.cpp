#include "jinja/parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <optional>

#include "jinja/lexer.hpp"
#include "jinja/python_text.hpp"

namespace bitnet::jinja {
namespace {

using form = expression::kind;

// After the first error every look at the tokens sees the end, so that every loop ends.
class parser {
 public:
  explicit parser(std::vector<token> tokens) : tokens_(std::move(tokens)) {}

  result<body> run() {
    body all = statements({});
    if (trouble_) return std::unexpected(*trouble_);
    return all;
  }

 private:
  using kind = token::kind;

  // ---- tokens

  [[nodiscard]] const token& now() const { return trouble_ ? tokens_.back() : tokens_[at_]; }
  [[nodiscard]] const token& ahead() const {
    return trouble_ || at_ + 1 >= tokens_.size() ? tokens_.back() : tokens_[at_ + 1];
  }
  token take() {
    token one = now();
    if (!trouble_ && at_ + 1 < tokens_.size()) ++at_;
    return one;
  }
  static bool is_sign(const token& t, std::string_view s) {
    return t.what == kind::sign && t.content == s;
  }
  static bool is_word(const token& t, std::string_view s) {
    return t.what == kind::name && t.content == s;
  }
  [[nodiscard]] bool at_sign(std::string_view s) const { return is_sign(now(), s); }
  [[nodiscard]] bool at_word(std::string_view s) const { return is_word(now(), s); }
  [[nodiscard]] bool at(kind k) const { return now().what == k; }
  bool skip_sign(std::string_view s) {
    if (!at_sign(s)) return false;
    take();
    return true;
  }
  bool skip_word(std::string_view s) {
    if (!at_word(s)) return false;
    take();
    return true;
  }
  static std::string describe(const token& t) {
    switch (t.what) {
      case kind::variable_end:
        return "'}}'";
      case kind::block_end:
        return "'%}'";
      case kind::end:
        return "the end of the template";
      case kind::text:
        return "a text";
      case kind::data:
      case kind::variable_begin:
      case kind::block_begin:
        return "text of the template";
      default:
        return fmt::format("'{}'", t.content.substr(0, longest_quote));
    }
  }
  void expect_sign(std::string_view s) {
    if (!skip_sign(s)) wrong(fmt::format("expected '{}', found {}", s, describe(now())));
  }
  void expect(kind k, std::string_view shown) {
    if (at(k))
      take();
    else
      wrong(fmt::format("expected '{}', found {}", shown, describe(now())));
  }
  std::string expect_name() {
    if (at(kind::name)) return take().content;
    wrong(fmt::format("expected a name, found {}", describe(now())));
    return {};
  }

  void wrong(const std::string& message) { wrong_at(now().line, message); }
  void wrong_at(uint32_t line, const std::string& message) {
    if (!trouble_) trouble_ = failure{BITNET_BAD_DATA, fmt::format("line {}: {}", line, message)};
  }

  // ---- building

  class level {
   public:
    explicit level(parser& p) : p_(p) {
      if (++p_.depth_ > deepest_syntax) p_.too_deep();
    }
    level(const level&) = delete;
    level& operator=(const level&) = delete;
    ~level() { --p_.depth_; }

   private:
    parser& p_;
  };

  void too_deep() {
    wrong(fmt::format("expressions or blocks lie more than {} deep in each other", deepest_syntax));
  }

  expression_ptr make(form what, uint32_t line, std::string name = {}) {
    auto out = std::make_unique<expression>();
    out->what = what;
    out->line = line;
    out->name = std::move(name);
    return out;
  }

  void add_part(expression& to, expression_ptr part) {
    if (part) deepen(to, part->depth);
    to.parts.push_back(std::move(part));
  }

  void deepen(expression& to, uint32_t below) {
    to.depth = std::max(to.depth, below + 1);
    if (to.depth > deepest_syntax) too_deep();
  }

  // ---- expressions, in the order in which they bind

  expression_ptr conditional() {
    const level deeper(*this);
    auto left = either();
    while (at_word("if")) {
      const uint32_t line = take().line;
      auto out = make(form::conditional, line);
      auto condition = either();
      add_part(*out, std::move(condition));
      add_part(*out, std::move(left));
      if (skip_word("else"))
        add_part(*out, conditional());
      else
        add_part(*out, nullptr);
      left = std::move(out);
    }
    return left;
  }

  expression_ptr either() {
    auto left = both();
    while (at_word("or")) {
      auto out = make(form::either, take().line);
      add_part(*out, std::move(left));
      add_part(*out, both());
      left = std::move(out);
    }
    return left;
  }

  expression_ptr both() {
    auto left = inversion();
    while (at_word("and")) {
      auto out = make(form::both, take().line);
      add_part(*out, std::move(left));
      add_part(*out, inversion());
      left = std::move(out);
    }
    return left;
  }

  expression_ptr inversion() {
    if (!at_word("not")) return compare();
    const level deeper(*this);
    auto out = make(form::inversion, take().line);
    add_part(*out, inversion());
    return out;
  }

  expression_ptr compare() {
    auto left = sum();
    expression_ptr out;
    for (;;) {
      std::string word;
      const uint32_t line = now().line;
      if (at_sign("==") || at_sign("!=") || at_sign("<") || at_sign("<=") || at_sign(">") ||
          at_sign(">=")) {
        word = take().content;
      } else if (skip_word("in")) {
        word = "in";
      } else if (at_word("not") && is_word(ahead(), "in")) {
        take();
        take();
        word = "not in";
      } else {
        break;
      }
      if (!out) {
        out = make(form::compare, line);
        add_part(*out, std::move(left));
      }
      out->words.push_back(std::move(word));
      add_part(*out, sum());
    }
    return out ? std::move(out) : std::move(left);
  }

  template <class Next>
  expression_ptr left_to_right(std::initializer_list<std::string_view> signs, Next&& next) {
    auto left = next();
    for (;;) {
      if (!std::ranges::any_of(signs, [&](std::string_view s) { return at_sign(s); })) return left;
      const token sign = take();
      auto out = make(form::arithmetic, sign.line, sign.content);
      add_part(*out, std::move(left));
      add_part(*out, next());
      left = std::move(out);
    }
  }

  expression_ptr sum() {
    return left_to_right({"+", "-"}, [&] { return concat(); });
  }

  expression_ptr concat() {
    auto first = product();
    if (!at_sign("~")) return first;
    auto out = make(form::concat, now().line);
    add_part(*out, std::move(first));
    while (skip_sign("~")) add_part(*out, product());
    return out;
  }

  expression_ptr product() {
    return left_to_right({"*", "/", "//", "%"}, [&] { return power(); });
  }

  expression_ptr power() {
    return left_to_right({"**"}, [&] { return unary(true); });
  }

  expression_ptr unary(bool with_filters) {
    const level deeper(*this);
    expression_ptr out;
    if (at_sign("-") || at_sign("+")) {
      const token sign = take();
      out = make(sign.content == "-" ? form::minus : form::plus, sign.line);
      add_part(*out, unary(false));
    } else {
      out = primary();
    }
    out = postfix(std::move(out));
    return with_filters ? filters_and_tests(std::move(out)) : std::move(out);
  }

  expression_ptr primary() {
    const token one = now();
    auto out = make(form::constant, one.line);
    switch (one.what) {
      case kind::name:
        take();
        if (one.content == "true" || one.content == "True") {
          out->constant = value(true);
        } else if (one.content == "false" || one.content == "False") {
          out->constant = value(false);
        } else if (one.content == "none" || one.content == "None") {
          out->constant = value::none();
        } else {
          out->what = form::name;
          out->name = one.content;
          mention(one.content);
        }
        return out;
      case kind::text: {
        std::string all = take().content;
        while (at(kind::text)) all += take().content;
        out->constant = value(std::move(all));
        return out;
      }
      case kind::integer: {
        const auto number = parse_int(one.content, 10);
        if (!number) wrong(fmt::format("the number {} is too large", describe(one)));
        out->constant = value(number.value_or(0));
        take();
        return out;
      }
      case kind::real:
        out->constant = value(parse_float(one.content).value_or(0.0));
        take();
        return out;
      default:
        break;
    }
    if (skip_sign("(")) {
      out = tuple(true, ")");
      expect_sign(")");
    } else if (skip_sign("[")) {
      out->what = form::list;
      while (!trouble_ && !at_sign("]")) {
        add_part(*out, conditional());
        if (!at_sign("]")) expect_sign(",");
      }
      expect_sign("]");
    } else if (skip_sign("{")) {
      out->what = form::dict;
      while (!trouble_ && !at_sign("}")) {
        add_part(*out, conditional());
        expect_sign(":");
        add_part(*out, conditional());
        if (!at_sign("}")) expect_sign(",");
      }
      expect_sign("}");
    } else {
      wrong(fmt::format("expected an expression, found {}", describe(one)));
    }
    return out;
  }

  // One expression, or several with commas between. `closing` "" ends with the tag.
  expression_ptr tuple(bool may_be_empty, std::string_view closing = "") {
    const uint32_t line = now().line;
    const auto ended = [&] {
      return at(kind::variable_end) || at(kind::block_end) || at(kind::end) ||
             (!closing.empty() && at_sign(closing));
    };
    std::vector<expression_ptr> parts;
    bool is_tuple = false;
    while (!ended()) {
      parts.push_back(conditional());
      if (!skip_sign(",")) break;
      is_tuple = true;
    }
    if (!is_tuple && !parts.empty()) return std::move(parts.front());
    if (!is_tuple && !may_be_empty)
      wrong(fmt::format("expected an expression, found {}", describe(now())));
    auto out = make(form::tuple, line);
    for (auto& part : parts) add_part(*out, std::move(part));
    return out;
  }

  expression_ptr postfix(expression_ptr of) {
    for (;;) {
      if (at_sign(".")) {
        const uint32_t line = take().line;
        if (at(kind::integer)) {
          auto out = make(form::item, line);
          auto index = primary();
          add_part(*out, std::move(of));
          add_part(*out, std::move(index));
          of = std::move(out);
        } else {
          auto out = make(form::attribute, line, expect_name());
          add_part(*out, std::move(of));
          of = std::move(out);
        }
      } else if (at_sign("[")) {
        of = subscript(std::move(of));
      } else if (at_sign("(")) {
        of = call(std::move(of));
      } else {
        return of;
      }
    }
  }

  expression_ptr call(expression_ptr of) {
    auto out = make(form::call, now().line);
    add_part(*out, std::move(of));
    call_arguments(*out);
    return out;
  }

  expression_ptr subscript(expression_ptr of) {
    const uint32_t line = take().line;
    std::vector<expression_ptr> bounds;
    bool is_slice = false;
    const auto bound = [&]() -> expression_ptr {
      if (at_sign(":") || at_sign("]") || at_sign(",")) return nullptr;
      return conditional();
    };
    bounds.push_back(bound());
    while (bounds.size() < 3 && skip_sign(":")) {
      is_slice = true;
      bounds.push_back(bound());
    }
    if (at_sign(",")) wrong("an index of several parts is not known here");
    expect_sign("]");
    auto out = make(is_slice ? form::slice : form::item, line);
    add_part(*out, std::move(of));
    if (!is_slice && !bounds.front()) wrong_at(line, "expected an expression, found ']'");
    for (auto& one : bounds) add_part(*out, std::move(one));
    return out;
  }

  void call_arguments(expression& to) {
    expect_sign("(");
    using how = argument::kind;
    while (!trouble_ && !at_sign(")")) {
      argument one{how::positional, {}, {}};
      if (skip_sign("**")) {
        one.how = how::spread_dict;
      } else if (skip_sign("*")) {
        one.how = how::spread_list;
      } else if (at(kind::name) && is_sign(ahead(), "=")) {
        one.how = how::named;
        one.name = take().content;
        take();
      }
      const bool behind = std::ranges::any_of(
          to.arguments, [](const argument& a) { return a.how != how::positional; });
      if (one.how == how::positional && behind) wrong("an argument stands behind a named one");
      one.content = conditional();
      if (one.content) deepen(to, one.content->depth);
      to.arguments.push_back(std::move(one));
      if (!at_sign(")")) expect_sign(",");
    }
    expect_sign(")");
  }

  expression_ptr filters_and_tests(expression_ptr of) {
    for (;;) {
      if (at_sign("|")) {
        of = filter_chain(std::move(of));
      } else if (at_word("is")) {
        of = test(std::move(of));
      } else if (at_sign("(")) {  // the call of what a filter gave
        of = call(std::move(of));
      } else {
        return of;
      }
    }
  }

  std::string dotted_name() {
    std::string name = expect_name();
    while (skip_sign(".")) name += "." + expect_name();
    return name;
  }

  expression_ptr one_filter(expression_ptr of) {
    const uint32_t line = now().line;
    auto out = make(form::filter, line, dotted_name());
    add_part(*out, std::move(of));
    if (at_sign("(")) call_arguments(*out);
    return out;
  }

  expression_ptr filter_chain(expression_ptr of) {
    while (skip_sign("|")) of = one_filter(std::move(of));
    return of;
  }

  expression_ptr test(expression_ptr of) {
    const uint32_t line = take().line;
    const bool negated = skip_word("not");
    auto out = make(form::test, line, dotted_name());
    add_part(*out, std::move(of));
    if (at_sign("(")) {
      call_arguments(*out);
    } else if ((at(kind::name) || at(kind::text) || at(kind::integer) || at(kind::real) ||
                at_sign("[") || at_sign("{")) &&
               !at_word("else") && !at_word("or") && !at_word("and")) {
      if (at_word("is")) wrong("tests cannot be chained with 'is'");
      auto only = postfix(primary());
      if (only) deepen(*out, only->depth);
      out->arguments.push_back({argument::kind::positional, {}, std::move(only)});
    }
    if (!negated) return out;
    auto opposite = make(form::inversion, line);
    add_part(*opposite, std::move(out));
    return opposite;
  }

  // ---- statements

  static bool is_any(const token& t, std::initializer_list<std::string_view> words) {
    return std::ranges::any_of(words, [&](std::string_view w) { return is_word(t, w); });
  }

  // Until a tag that begins with one of `ends`, which is then the current token; without any, until
  // the end of the template.
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
        text.text = one.content;
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

  // The body of a tag and its end.
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

  // As tuple(), but an `if` is the loop's.
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
    while (!trouble_ && !at_sign(")")) {
      parameter one{expect_name(), {}};
      if (skip_sign("="))
        one.otherwise = conditional();
      else if (!of.parameters.empty() && of.parameters.back().otherwise)
        wrong(fmt::format("the parameter '{}' without a default stands behind one with",
                          one.name.substr(0, longest_quote)));
      of.parameters.push_back(std::move(one));
      if (!at_sign(")")) expect_sign(",");
    }
    expect_sign(")");
  }

  void macro_body(macro_syntax& of, std::string_view end) {
    expect(kind::block_end, "%}");
    const uint32_t outer_loops = std::exchange(loops_, 0);
    macro_syntax* const outer = std::exchange(macro_, &of);
    of.content = std::make_unique<body>(statements({end}));
    macro_ = outer;
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
    if (!trouble_ && out.expressions.back()->what != form::call)
      wrong_at(line, "expected a call behind {% call %}");
    macro_body(*caller, "endcall");
    out.macro = std::move(caller);
  }

  void with(statement& out) {
    out.what = statement::kind::with;
    while (!trouble_ && !at(kind::block_end)) {
      out.targets.push_back(one_target(false));
      expect_sign("=");
      out.expressions.push_back(conditional());
      if (!at(kind::block_end)) expect_sign(",");
    }
    content(out, "endwith");
  }

  void mention(const std::string& name) {
    if (macro_ == nullptr) return;
    if (name == "varargs") macro_->takes_list = true;
    if (name == "kwargs") macro_->takes_dict = true;
    if (name == "caller") macro_->takes_caller = true;
  }

  static constexpr std::size_t longest_quote = 40;

  std::vector<token> tokens_;
  std::size_t at_ = 0;
  uint32_t depth_ = 0;
  uint32_t loops_ = 0;  // around the current tag, in this macro
  macro_syntax* macro_ = nullptr;
  std::optional<failure> trouble_;
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
