#include "jinja/tests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "jinja/arithmetic.hpp"
#include "jinja/binding.hpp"
#include "jinja/operations.hpp"
#include "jinja/replacing.hpp"

namespace bitnet::jinja {
namespace {

using kind = value::kind;

// Operators by the names of tests.
const std::map<std::string_view, std::string_view>& comparisons() {
  static const std::map<std::string_view, std::string_view> all = {
      {"==", "=="},      {"eq", "=="}, {"equalto", "=="}, {"!=", "!="},
      {"ne", "!="},      {">", ">"},   {"gt", ">"},       {"greaterthan", ">"},
      {">=", ">="},      {"ge", ">="}, {"<", "<"},        {"lt", "<"},
      {"lessthan", "<"}, {"<=", "<="}, {"le", "<="},      {"in", "in"}};
  return all;
}

bool same(rendering& at, const value& a, const value& b) {
  const bool texts = a.is(kind::text) && b.is(kind::text);
  return (!texts || at.step(std::min(a.text().size(), b.text().size()) / 256)) && a.same_as(b);
}

bool divides(rendering& at, const value& a, const value& b) {
  return equal(at, arithmetic(at, "%", a, b), value(int64_t{0}));
}

using test_with_argument = bool (*)(rendering&, const value&, const value&);
const std::map<std::string_view, test_with_argument>& tests_with_argument() {
  static const std::map<std::string_view, test_with_argument> all = {{"divisibleby", divides},
                                                                     {"sameas", same}};
  return all;
}

template <bool Odd>
bool leaves_one(rendering& at, const value& v) {
  return equal(at, arithmetic(at, "%", v, value(int64_t{2})), value(int64_t{Odd ? 1 : 0}));
}

template <bool Lower>
bool is_cased(rendering& at, const value& v) {
  const value text = at.kept(str(at, v));
  if (!at.ok()) return false;
  const value low = changed(at, text.marked(), to_lower);
  const value up = changed(at, text.marked(), to_upper);
  if (!at.ok()) return false;
  return text.text() == (Lower ? low : up).text() && text.text() != (Lower ? up : low).text();
}

bool can_be_walked(rendering&, const value& v) {
  return v.is(kind::text) || v.is_sequence() || v.is(kind::dict) || v.is(kind::undefined);
}

using plain_test = bool (*)(rendering&, const value&);
const std::map<std::string_view, plain_test>& plain_tests() {
  using r = rendering;
  using v = value;
  static const std::map<std::string_view, plain_test> all = {
      {"boolean", [](r&, const v& x) { return x.is(kind::boolean); }},
      {"callable", [](r&, const v& x) { return x.is(kind::function) || x.is(kind::undefined); }},
      {"defined", [](r&, const v& x) { return !x.is(kind::undefined); }},
      {"escaped", [](r&, const v&) { return false; }},
      {"even", leaves_one<false>},
      {"false", [](r&, const v& x) { return x.is(kind::boolean) && !x.boolean(); }},
      {"float", [](r&, const v& x) { return x.is(kind::real); }},
      {"integer", [](r&, const v& x) { return x.is(kind::integer); }},
      {"iterable", can_be_walked},
      {"lower", is_cased<true>},
      {"mapping", [](r&, const v& x) { return x.is(kind::dict); }},
      {"none", [](r&, const v& x) { return x.is(kind::none); }},
      {"number", [](r&, const v& x) { return x.is_number(); }},
      {"odd", leaves_one<true>},
      {"sequence", can_be_walked},
      {"string", [](r&, const v& x) { return x.is(kind::text); }},
      {"true", [](r&, const v& x) { return x.is(kind::boolean) && x.boolean(); }},
      {"undefined", [](r&, const v& x) { return x.is(kind::undefined); }},
      {"upper", is_cased<false>},
  };
  return all;
}

}  // namespace

std::vector<std::string> test_names() {
  std::vector<std::string> out;
  for (const auto& [name, sign] : comparisons()) out.emplace_back(name);
  for (const auto& [name, run] : tests_with_argument()) out.emplace_back(name);
  for (const auto& [name, run] : plain_tests()) out.emplace_back(name);
  return out;
}

bool tested(rendering& at, const std::string& name, const value& v, arguments& given) {
  if (!at.step()) return false;
  if (const auto sign = comparisons().find(name); sign != comparisons().end()) {
    const auto a = bind(at, name, given, {"other"}, 1);
    return compare(at, v, sign->second, a[0]);
  }
  if (const auto run = tests_with_argument().find(name); run != tests_with_argument().end()) {
    const auto a = bind(at, name, given, {"other"}, 1);
    return run->second(at, v, a[0]);
  }
  if (!given.positional.empty() || !given.named.empty()) {
    at.wrong(fmt::format("the test '{}' takes no arguments", name.substr(0, 40)));
    return false;
  }
  if (const auto run = plain_tests().find(name); run != plain_tests().end())
    return run->second(at, v);
  at.wrong(fmt::format("the test '{}' is not known here", name.substr(0, 40)));
  return false;
}

}  // namespace bitnet::jinja
