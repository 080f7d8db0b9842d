#include "jinja/expression_parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "jinja/python_text.hpp"

namespace bitnet::jinja {

expression_ptr expression_parser::make(form what, uint32_t line, std::string name) {
  auto out = std::make_unique<expression>();
  out->what = what;
  out->line = line;
  out->name = std::move(name);
  return out;
}

void expression_parser::add_part(expression& to, expression_ptr part) {
  if (part) deepen(to, part->depth);
  to.parts.push_back(std::move(part));
}

void expression_parser::deepen(expression& to, uint32_t below) {
  to.depth = std::max(to.depth, below + 1);
  if (to.depth > deepest_syntax) too_deep();
}

expression_ptr expression_parser::conditional() {
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

expression_ptr expression_parser::either() {
  auto left = both();
  while (at_word("or")) {
    auto out = make(form::either, take().line);
    add_part(*out, std::move(left));
    add_part(*out, both());
    left = std::move(out);
  }
  return left;
}

expression_ptr expression_parser::both() {
  auto left = inversion();
  while (at_word("and")) {
    auto out = make(form::both, take().line);
    add_part(*out, std::move(left));
    add_part(*out, inversion());
    left = std::move(out);
  }
  return left;
}

expression_ptr expression_parser::inversion() {
  if (!at_word("not")) return compare();
  const level deeper(*this);
  auto out = make(form::inversion, take().line);
  add_part(*out, inversion());
  return out;
}

expression_ptr expression_parser::compare() {
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
expression_ptr expression_parser::left_to_right(std::initializer_list<std::string_view> signs,
                                                Next&& next) {
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

expression_ptr expression_parser::sum() {
  return left_to_right({"+", "-"}, [&] { return concat(); });
}

expression_ptr expression_parser::concat() {
  auto first = product();
  if (!at_sign("~")) return first;
  auto out = make(form::concat, now().line);
  add_part(*out, std::move(first));
  while (skip_sign("~")) add_part(*out, product());
  return out;
}

expression_ptr expression_parser::product() {
  return left_to_right({"*", "/", "//", "%"}, [&] { return power(); });
}

expression_ptr expression_parser::power() {
  return left_to_right({"**"}, [&] { return unary(true); });
}

expression_ptr expression_parser::unary(bool with_filters) {
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

expression_ptr expression_parser::primary() {
  switch (now().what) {
    case kind::name:
      return name_or_constant();
    case kind::text:
      return texts();
    case kind::integer:
      return whole_number();
    case kind::real: {
      const token one = take();
      auto out = make(form::constant, one.line);
      out->constant = value(parse_float(one.content).value_or(0.0));
      return out;
    }
    default:
      return bracketed();
  }
}

expression_ptr expression_parser::name_or_constant() {
  const token one = take();
  auto out = make(form::constant, one.line);
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
}

// Adjacent texts are one, as in Python.
expression_ptr expression_parser::texts() {
  auto out = make(form::constant, now().line);
  std::string all = take().content;
  while (at(kind::text)) all += take().content;
  out->constant = value(marked_text(std::move(all), origin::own));
  return out;
}

expression_ptr expression_parser::whole_number() {
  const token one = now();
  auto out = make(form::constant, one.line);
  const auto number = parse_int(one.content, 10);
  if (!number) wrong(fmt::format("the number {} is too large", describe(one)));
  out->constant = value(number.value_or(0));
  take();
  return out;
}

expression_ptr expression_parser::bracketed() {
  const token one = now();
  if (skip_sign("(")) {
    auto out = tuple(true, ")");
    expect_sign(")");
    return out;
  }
  if (at_sign("[")) return list();
  if (at_sign("{")) return dict();
  wrong(fmt::format("expected an expression, found {}", describe(one)));
  return make(form::constant, one.line);
}

expression_ptr expression_parser::list() {
  auto out = make(form::list, take().line);
  while (ok() && !at_sign("]")) {
    add_part(*out, conditional());
    if (!at_sign("]")) expect_sign(",");
  }
  expect_sign("]");
  return out;
}

expression_ptr expression_parser::dict() {
  auto out = make(form::dict, take().line);
  while (ok() && !at_sign("}")) {
    add_part(*out, conditional());
    expect_sign(":");
    add_part(*out, conditional());
    if (!at_sign("}")) expect_sign(",");
  }
  expect_sign("}");
  return out;
}

expression_ptr expression_parser::tuple(bool may_be_empty, std::string_view closing) {
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

expression_ptr expression_parser::postfix(expression_ptr of) {
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

expression_ptr expression_parser::call(expression_ptr of) {
  auto out = make(form::call, now().line);
  add_part(*out, std::move(of));
  call_arguments(*out);
  return out;
}

expression_ptr expression_parser::subscript(expression_ptr of) {
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

void expression_parser::call_arguments(expression& to) {
  expect_sign("(");
  using how = argument::kind;
  bool behind = false;  // a named or unpacked argument came before
  while (ok() && !at_sign(")")) {
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
    if (one.how == how::positional && behind) wrong("an argument stands behind a named one");
    behind = behind || one.how != how::positional;
    one.content = conditional();
    if (one.content) deepen(to, one.content->depth);
    to.arguments.push_back(std::move(one));
    if (!at_sign(")")) expect_sign(",");
  }
  expect_sign(")");
}

expression_ptr expression_parser::filters_and_tests(expression_ptr of) {
  for (;;) {
    if (at_sign("|")) {
      of = filter_chain(std::move(of));
    } else if (at_word("is")) {
      of = test(std::move(of));
    } else if (at_sign("(")) {  // calls the result of a filter
      of = call(std::move(of));
    } else {
      return of;
    }
  }
}

std::string expression_parser::dotted_name() {
  std::string name = expect_name();
  while (skip_sign(".")) name += "." + expect_name();
  return name;
}

expression_ptr expression_parser::one_filter(expression_ptr of) {
  const uint32_t line = now().line;
  auto out = make(form::filter, line, dotted_name());
  add_part(*out, std::move(of));
  if (at_sign("(")) call_arguments(*out);
  return out;
}

expression_ptr expression_parser::filter_chain(expression_ptr of) {
  while (skip_sign("|")) of = one_filter(std::move(of));
  return of;
}

expression_ptr expression_parser::test(expression_ptr of) {
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

void expression_parser::mention(const std::string& name) {
  if (macro_ == nullptr) return;
  if (name == "varargs") macro_->takes_list = true;
  if (name == "kwargs") macro_->takes_dict = true;
  if (name == "caller") macro_->takes_caller = true;
}

}  // namespace bitnet::jinja
