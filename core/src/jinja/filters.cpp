#include "jinja/filters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "jinja/arithmetic.hpp"
#include "jinja/binding.hpp"
#include "jinja/json_text.hpp"
#include "jinja/operations.hpp"
#include "jinja/percent_format.hpp"
#include "jinja/python_text.hpp"
#include "jinja/replacing.hpp"
#include "jinja/sorting.hpp"

namespace bitnet::jinja {
namespace {

using kind = value::kind;
using filter = value (*)(rendering&, const value&, arguments&);

// "a.b.0" of an item, as the filters' `attribute` means it.
value member(rendering& at, value of, const value& path) {
  if (!path.is(kind::text)) return item(at, of, path);
  std::string_view rest = path.text();
  while (at.ok()) {
    const auto dot = rest.find('.');
    const std::string part(rest.substr(0, dot));
    const auto index = part.find_first_not_of("0123456789") == std::string::npos
                           ? parse_int(part, 10)
                           : std::nullopt;
    of = item(at, of, index ? value(*index) : value(part));
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  return of;
}

value folded(rendering& at, const value& v) {
  return v.is(kind::text) ? at.text(to_lower(v.text())) : v;
}

value key_of(rendering& at, const value& one, const value& path, bool case_sensitive) {
  const value key = absent(path) ? one : member(at, one, path);
  return case_sensitive ? key : folded(at, key);
}

// Pairs of key and item, sorted by the first; equal ones keep their order.
sequence sorted(rendering& at, std::vector<std::pair<value, value>> all, bool reverse) {
  sort_in_order(all, [&](const auto& a, const auto& b) {
    return reverse ? less(at, b.first, a.first) : less(at, a.first, b.first);
  });
  sequence out;
  for (auto& one : all) out.push_back(std::move(one.second));
  return out;
}

value sort(rendering& at, const value& v, arguments& given) {
  const auto a = bind(at, "sort", given, {"reverse", "case_sensitive", "attribute"});
  std::vector<std::pair<value, value>> all;
  for (const value& one : items_of(at, v))
    all.emplace_back(key_of(at, one, a[2], truth(a[1])), one);
  return at.list(sorted(at, std::move(all), truth(a[0])));
}

value dictsort(rendering& at, const value& v, arguments& given) {
  const auto a = bind(at, "dictsort", given, {"case_sensitive", "by", "reverse"});
  if (!v.is(kind::dict)) return at.wrong("dictsort needs a dict");
  const bool by_value = a[1].is(kind::text) && a[1].text() == "value";
  std::vector<std::pair<value, value>> all;
  for (const auto& [key, content] : v.entries().entries())
    all.emplace_back(key_of(at, by_value ? content : key, {}, truth(a[0])),
                     at.tuple({key, content}));
  return at.list(sorted(at, std::move(all), truth(a[2])));
}

value unique(rendering& at, const value& v, arguments& given) {
  const auto a = bind(at, "unique", given, {"case_sensitive", "attribute"});
  std::set<std::string> seen;
  sequence out;
  for (const value& one : items_of(at, v)) {
    const auto hash = hash_key(key_of(at, one, a[1], truth(a[0])));
    if (!hash) return at.wrong("unique needs texts or numbers");
    if (seen.insert(*hash).second) out.push_back(one);
  }
  return at.list(std::move(out));
}

template <bool Largest>
value extreme(rendering& at, const value& v, arguments& given) {
  const auto a = bind(at, "min", given, {"case_sensitive", "attribute"});
  value best = value::undefined("No aggregated item, sequence was empty.");
  value best_key;
  bool first = true;
  for (const value& one : items_of(at, v)) {
    const value key = key_of(at, one, a[1], truth(a[0]));
    if (first || (Largest ? less(at, best_key, key) : less(at, key, best_key))) {
      best = one;
      best_key = key;
    }
    first = false;
  }
  return best;
}

value join(rendering& at, const value& v, arguments& given) {
  const auto a = bind(at, "join", given, {"d", "attribute"});
  const marked_text between = str(at, a[0]);
  marked_text out;
  bool first = true;
  for (const value& one : items_of(at, v)) {
    if (!at.room(2 * between.size())) return {};
    if (!first) out.append(between);
    first = false;
    const marked_text piece = str(at, absent(a[1]) ? one : member(at, one, a[1]));
    if (!at.room(piece.size())) return {};
    out.append(piece);
  }
  return at.text(std::move(out));
}

value indent(rendering& at, const value& v, arguments& given) {
  const auto a = bind(at, "indent", given, {"width", "first", "blank"});
  if (!v.is(kind::text)) return at.wrong("indent needs a text");
  marked_text by(std::string(4, ' '), origin::own);
  if (a[0].is(kind::text)) by = a[0].marked();
  if (a[0].is_whole()) {
    const auto width = static_cast<uint64_t>(std::max<int64_t>(a[0].whole(), 0));
    if (!at.room(width)) return {};
    by = marked_text(std::string(width, ' '), origin::own);
  }
  marked_text whole = v.marked();
  whole.append("\n", origin::message);
  marked_text out;
  bool first = true;
  for (const auto line : lines_of(whole.bytes(), false)) {
    if (!at.step() || !at.room(2 * (by.size() + line.size()))) return {};
    // The line end has the mark of the one that stood there.
    const auto begin = static_cast<std::size_t>(line.data() - whole.bytes().data());
    if (!first) out.append("\n", whole.at(begin - 1));
    if (first ? truth(a[1]) : truth(a[2]) || !line.empty()) out.append(by);
    first = false;
    out.append(whole, line);
  }
  return at.text(std::move(out));
}

value whole_number(rendering& at, const value& v, arguments& given) {
  const auto a = bind(at, "int", given, {"default", "base"});
  value otherwise = a[0].is(kind::undefined) ? value(int64_t{0}) : a[0];
  if (v.is_whole()) return v.whole();
  double d = 0;
  if (v.is(kind::text)) {
    if (const auto i = parse_int(v.text(), a[1].is_whole() ? static_cast<int>(a[1].whole()) : 10))
      return *i;
    const auto read = parse_float(v.text());
    if (!read || !std::isfinite(*read)) return otherwise;
    d = *read;
  } else if (v.is(kind::real)) {
    d = v.number();
  } else {
    if (v.is(kind::undefined)) return at.wrong(v.why_undefined());
    return otherwise;
  }
  constexpr double largest = 9e18;
  if (!(std::abs(d) < largest)) return at.wrong("the number is no integer of 64 bits");
  return static_cast<int64_t>(d);
}

value real_number(rendering& at, const value& v, arguments& given) {
  const auto a = bind(at, "float", given, {"default"});
  if (v.is_number()) return v.number();
  if (v.is(kind::undefined)) return at.wrong(v.why_undefined());
  if (v.is(kind::text))
    if (const auto d = parse_float(v.text())) return *d;
  return a[0].is(kind::undefined) ? value(0.0) : a[0];
}

value rounded(rendering& at, const value& v, arguments& given) {
  const auto a = bind(at, "round", given, {"precision", "method"});
  if (!v.is_number()) return at.wrong("round needs a number");
  const int64_t digits = a[0].is_whole() ? a[0].whole() : 0;
  if (digits < 0 || digits > 20) return at.wrong("round needs 0 to 20 digits");
  const std::string how = a[1].is(kind::text) ? a[1].text() : "common";
  if (how == "common") {
    if (v.is_whole()) return v.whole();
    // printf rounds the exact binary value, half to even, as Python does.
    return value(parse_float(fmt::format("{:.{}f}", v.number(), digits)).value_or(v.number()));
  }
  const double scale = std::pow(10.0, static_cast<double>(digits));
  if (how == "ceil") return std::ceil(v.number() * scale) / scale;
  if (how == "floor") return std::floor(v.number() * scale) / scale;
  return at.wrong("round knows the methods common, ceil and floor");
}

value sum(rendering& at, const value& v, arguments& given) {
  const auto a = bind(at, "sum", given, {"attribute", "start"});
  value out = a[1].is(kind::undefined) ? value(int64_t{0}) : a[1];
  for (const value& one : items_of(at, v))
    out = arithmetic(at, "+", out, absent(a[0]) ? one : member(at, one, a[0]));
  return out;
}

value map(rendering& at, const value& v, arguments& given) {
  sequence out;
  if (given.positional.empty()) {
    const auto a = bind(at, "map", given, {"attribute", "default"}, 1);
    for (const value& one : items_of(at, v)) {
      value got = member(at, one, a[0]);
      out.push_back(got.is(kind::undefined) && !absent(a[1]) ? a[1] : got);
    }
    return at.list(std::move(out));
  }
  const std::string name = str(at, given.positional.front()).bytes();
  for (const value& one : items_of(at, v)) {
    arguments rest{{given.positional.begin() + 1, given.positional.end()}, given.named};
    out.push_back(filtered(at, name, one, rest));
    if (!at.ok()) return {};
  }
  return at.list(std::move(out));
}

template <bool Attribute, bool Keep>
value select(rendering& at, const value& v, arguments& given) {
  const std::size_t skip = Attribute ? 1 : 0;
  if (given.positional.size() < skip) return at.wrong("the filter needs the name of an attribute");
  sequence out;
  for (const value& one : items_of(at, v)) {
    if (!at.step()) return {};
    const value judged = Attribute ? member(at, one, given.positional.front()) : one;
    bool yes = truth(judged);
    if (given.positional.size() > skip) {
      arguments rest{{given.positional.begin() + static_cast<std::ptrdiff_t>(skip) + 1,
                      given.positional.end()},
                     given.named};
      yes = tested(at, str(at, given.positional[skip]).bytes(), judged, rest);
    }
    if (yes == Keep) out.push_back(one);
  }
  return at.list(std::move(out));
}

value batch(rendering& at, const value& v, arguments& given) {
  const auto a = bind(at, "batch", given, {"linecount", "fill_with"}, 1);
  if (!a[0].is_whole() || a[0].whole() < 1) return at.wrong("batch needs a size of 1 or more");
  const auto size = static_cast<std::size_t>(a[0].whole());
  sequence out;
  sequence row;
  for (const value& one : items_of(at, v)) {
    row.push_back(one);
    if (row.size() == size) out.push_back(at.list(std::exchange(row, {})));
  }
  if (!row.empty()) {
    while (row.size() < size && !absent(a[1]) && at.step() && at.room(sizeof(value)))
      row.push_back(a[1]);
    out.push_back(at.list(std::move(row)));
  }
  return at.list(std::move(out));
}

value tojson(rendering& at, const value& v, arguments& given) {
  const auto a = bind(at, "tojson", given, {"ensure_ascii", "indent", "separators", "sort_keys"});
  if (!absent(a[2])) return at.wrong("tojson takes no separators here");
  json_form form;
  form.ascii = truth(a[0]);
  form.sort_keys = truth(a[3]);
  form.indented = a[1].is_whole() || a[1].is(kind::text);
  if (a[1].is(kind::text)) form.indent = a[1].text();
  if (a[1].is_whole()) {
    constexpr int64_t widest = 64;
    form.indent.assign(static_cast<std::size_t>(std::clamp<int64_t>(a[1].whole(), 0, widest)), ' ');
  }
  return at.text(json_text(at, v, form));
}

value escaped(rendering& at, const value& v, arguments&) {
  const marked_text all = str(at, v);
  marked_text out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string_view c = std::string_view(all.bytes()).substr(i, 1);
    const std::string_view instead = c == "&"    ? "&amp;"
                                     : c == "<"  ? "&lt;"
                                     : c == ">"  ? "&gt;"
                                     : c == "'"  ? "&#39;"
                                     : c == "\"" ? "&#34;"
                                                 : c;
    out.append(instead, all.at(i));
  }
  return at.text(std::move(out));
}

value first(rendering& at, const value& v, arguments&) {
  const sequence all = items_of(at, v);
  return all.empty() ? value::undefined("No first item, sequence was empty.") : all.front();
}

value last(rendering& at, const value& v, arguments&) {
  const sequence all = items_of(at, v);
  return all.empty() ? value::undefined("No last item, sequence was empty.") : all.back();
}

value otherwise(rendering& at, const value& v, arguments& given) {
  const auto a = bind(at, "default", given, {"default_value", "boolean"});
  if (!v.is(kind::undefined) && !(truth(a[1]) && !truth(v))) return v;
  return given.positional.empty() && given.named.empty() ? value("") : a[0];
}

value reversed(rendering& at, const value& v, arguments&) {
  sequence all = items_of(at, v);
  if (!at.ok()) return {};  // the last character may not be there
  std::ranges::reverse(all);
  if (!v.is(kind::text)) return at.list(std::move(all));
  marked_text out;
  for (const value& one : all) out.append(one.marked());
  return at.text(std::move(out));
}

value length_of(rendering& at, const value& v, arguments&) {
  return static_cast<int64_t>(length(at, v));
}

value absolute(rendering& at, const value& v, arguments&) {
  return v.is_number() && v.number() < 0 ? negative(at, v) : positive(at, v);
}

value formatted(rendering& at, const value& v, arguments& given) {
  if (!given.positional.empty() && !given.named.empty())
    return at.wrong("format takes values or named values, not both");
  dict by_name;
  for (const auto& [name, content] : given.named) by_name.set(value(name), content);
  return percent_formatted(
      at, str(at, v),
      given.named.empty() ? at.tuple(given.positional) : at.map(std::move(by_name)));
}

value pairs(rendering& at, const value& v, arguments&) {
  if (v.is(kind::undefined)) return at.list({});
  if (!v.is(kind::dict)) return at.wrong("items needs a dict");
  sequence out;
  for (const auto& [key, content] : v.entries().entries()) out.push_back(at.tuple({key, content}));
  return at.list(std::move(out));
}

value with_replacements(rendering& at, const value& v, arguments& given) {
  const auto a = bind(at, "replace", given, {"old", "new", "count"}, 2);
  return replaced(at, str(at, v), str(at, a[0]).bytes(), str(at, a[1]),
                  a[2].is_whole() ? a[2].whole() : -1);
}

value trimmed(rendering& at, const value& v, arguments& given) {
  const auto a = bind(at, "trim", given, {"chars"});
  const marked_text text = str(at, v);
  if (absent(a[0])) return at.text(text.part(stripped(text.bytes(), side::both)));
  const marked_text chars = str(at, a[0]);
  return at.text(text.part(stripped(text.bytes(), side::both, chars.bytes())));
}

template <std::string (*Change)(std::string_view)>
value in_case(rendering& at, const value& v, arguments&) {
  const marked_text text = str(at, v);
  return at.text(with_marks_of(text, Change(text.bytes())));
}

const std::map<std::string, filter, std::less<>>& filters() {
  using r = rendering;
  using v = value;
  using a = arguments;
  static const std::map<std::string, filter, std::less<>> all = {
      {"abs", absolute},
      {"batch", batch},
      {"capitalize", in_case<capitalized>},
      {"count", length_of},
      {"d", otherwise},
      {"default", otherwise},
      {"dictsort", dictsort},
      {"e", escaped},
      {"escape", escaped},
      {"first", first},
      {"float", real_number},
      {"format", formatted},
      {"indent", indent},
      {"int", whole_number},
      {"items", pairs},
      {"join", join},
      {"last", last},
      {"length", length_of},
      {"list", [](r& at, const v& x, a&) { return at.list(items_of(at, x)); }},
      {"lower", in_case<to_lower>},
      {"map", map},
      {"max", extreme<true>},
      {"min", extreme<false>},
      {"reject", select<false, false>},
      {"rejectattr", select<true, false>},
      {"replace", with_replacements},
      {"reverse", reversed},
      {"round", rounded},
      {"safe", [](r& at, const v& x, a&) { return at.text(str(at, x)); }},
      {"select", select<false, true>},
      {"selectattr", select<true, true>},
      {"sort", sort},
      {"string", [](r& at, const v& x, a&) { return at.text(str(at, x)); }},
      {"sum", sum},
      {"title", in_case<titled_by_filter>},
      {"tojson", tojson},
      {"trim", trimmed},
      {"unique", unique},
      {"upper", in_case<to_upper>},
  };
  return all;
}

// The sign that a test's name stands for, or "".
std::string_view sign_of(std::string_view name) {
  static const std::map<std::string_view, std::string_view> all = {
      {"==", "=="},      {"eq", "=="}, {"equalto", "=="}, {"!=", "!="},
      {"ne", "!="},      {">", ">"},   {"gt", ">"},       {"greaterthan", ">"},
      {">=", ">="},      {"ge", ">="}, {"<", "<"},        {"lt", "<"},
      {"lessthan", "<"}, {"<=", "<="}, {"le", "<="},      {"in", "in"}};
  const auto found = all.find(name);
  return found == all.end() ? std::string_view{} : found->second;
}

}  // namespace

value filtered(rendering& at, const std::string& name, const value& v, arguments& given) {
  const rendering::level deeper(at);
  if (!at.step()) return {};
  const auto found = filters().find(name);
  if (found == filters().end())
    return at.wrong(fmt::format("the filter '{}' is not known here", name.substr(0, 40)));
  return found->second(at, v, given);
}

bool tested(rendering& at, const std::string& name, const value& v, arguments& given) {
  if (!at.step()) return false;
  if (const auto sign = sign_of(name); !sign.empty()) {
    const auto a = bind(at, name, given, {"other"}, 1);
    return compare(at, v, sign, a[0]);
  }
  if (name == "divisibleby" || name == "sameas") {
    const auto a = bind(at, name, given, {"other"}, 1);
    if (name == "sameas") return v.same_as(a[0]);
    return equal(at, arithmetic(at, "%", v, a[0]), value(int64_t{0}));
  }
  if (!given.positional.empty() || !given.named.empty()) {
    at.wrong(fmt::format("the test '{}' takes no arguments", name.substr(0, 40)));
    return false;
  }
  if (name == "defined") return !v.is(kind::undefined);
  if (name == "undefined") return v.is(kind::undefined);
  if (name == "none") return v.is(kind::none);
  if (name == "boolean") return v.is(kind::boolean);
  if (name == "true") return v.is(kind::boolean) && v.boolean();
  if (name == "false") return v.is(kind::boolean) && !v.boolean();
  if (name == "integer") return v.is(kind::integer);
  if (name == "float") return v.is(kind::real);
  if (name == "number") return v.is_number();
  if (name == "string") return v.is(kind::text);
  if (name == "mapping") return v.is(kind::dict);
  if (name == "sequence" || name == "iterable")
    return v.is(kind::text) || v.is_sequence() || v.is(kind::dict) || v.is(kind::undefined);
  if (name == "callable") return v.is(kind::function) || v.is(kind::undefined);
  if (name == "escaped") return false;
  if (name == "odd" || name == "even") {
    const value rest = arithmetic(at, "%", v, value(int64_t{2}));
    return equal(at, rest, value(int64_t{name == "odd" ? 1 : 0}));
  }
  if (name == "lower" || name == "upper") {
    const std::string text = str(at, v).bytes();
    const std::string same = name == "lower" ? to_lower(text) : to_upper(text);
    const std::string other = name == "lower" ? to_upper(text) : to_lower(text);
    return text == same && text != other;
  }
  at.wrong(fmt::format("the test '{}' is not known here", name.substr(0, 40)));
  return false;
}

}  // namespace bitnet::jinja
