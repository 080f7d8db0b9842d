#include "jinja/filters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "jinja/arithmetic.hpp"
#include "jinja/binding.hpp"
#include "jinja/json_text.hpp"
#include "jinja/makers.hpp"
#include "jinja/operations.hpp"
#include "jinja/percent_format.hpp"
#include "jinja/python_text.hpp"
#include "jinja/replacing.hpp"
#include "jinja/sorting.hpp"
#include "jinja/tests.hpp"

namespace bitnet::jinja {
namespace {

using kind = value::kind;
using filter = value (*)(rendering&, const value&, arguments&);

// The member "a.b.0" of an item, for the filters' `attribute`.
value member(rendering& at, value of, const value& path) {
  if (!path.is(kind::text)) return item(at, of, path);
  std::string_view rest = path.text();
  // Each part is copied once, and a number twice.
  const uint64_t for_parts = 3 * rest.size();
  if (!at.read(rest.size()) || !at.room(for_parts)) return {};
  at.give_back(for_parts);
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
  return v.is(kind::text) ? changed(at, v.marked(), to_lower) : v;
}

value key_of(rendering& at, const value& one, const value& path, bool case_sensitive) {
  const value key = absent(path) ? one : member(at, one, path);
  return case_sensitive ? key : folded(at, key);
}

using keyed = std::vector<std::pair<value, value>>;  // key and item

// Reserves room for pairs to sort: the pairs, and as many temporaries.
bool room_for_pairs(rendering& at, keyed& all, std::size_t n) {
  if (!at.room(2 * n * sizeof(keyed::value_type) + 64)) return false;
  all.reserve(n);
  return true;
}

// Items sorted by their keys; equal ones keep their order.
value sorted(rendering& at, keyed all, bool reverse) {
  sort_in_order(all, [&](const auto& a, const auto& b) {
    return reverse ? less(at, b.first, a.first) : less(at, a.first, b.first);
  });
  list_maker out(at);
  if (!out.reserve(all.size())) return {};
  for (auto& one : all) out.add(std::move(one.second));
  return out.list();
}

value sort(rendering& at, const value& v, arguments& given) {
  const auto a = bind(at, "sort", given, {"reverse", "case_sensitive", "attribute"});
  const sequence items = items_of(at, v);
  keyed all;
  if (!room_for_pairs(at, all, items.size())) return {};
  for (const value& one : items) {
    if (!at.step()) return {};
    all.emplace_back(key_of(at, one, a[2], truth(a[1])), one);
  }
  return sorted(at, std::move(all), truth(a[0]));
}

value dictsort(rendering& at, const value& v, arguments& given) {
  const auto a = bind(at, "dictsort", given, {"case_sensitive", "by", "reverse"});
  if (!v.is(kind::dict)) return at.wrong("dictsort needs a dict");
  const bool by_value = a[1].is(kind::text) && a[1].text() == "value";
  keyed all;
  if (!room_for_pairs(at, all, v.entries().entries().size())) return {};
  for (const auto& [key, content] : v.entries().entries()) {
    if (!at.step()) return {};
    all.emplace_back(key_of(at, by_value ? content : key, {}, truth(a[0])),
                     at.tuple({key, content}));
  }
  return sorted(at, std::move(all), truth(a[2]));
}

value unique(rendering& at, const value& v, arguments& given) {
  const auto a = bind(at, "unique", given, {"case_sensitive", "attribute"});
  dict seen;
  list_maker out(at);
  for (const value& one : items_of(at, v)) {
    const value key = key_of(at, one, a[1], truth(a[0]));
    const std::size_t before = seen.entries().size();
    if (!at.step() || !at.ok()) return {};
    if (!at.put(seen, key, {})) return at.wrong("unique needs texts or numbers");
    if (seen.entries().size() > before) out.add(one);
  }
  return out.list();
}

template <bool Largest>
value extreme(rendering& at, const value& v, arguments& given) {
  const auto a = bind(at, "min", given, {"case_sensitive", "attribute"});
  value best = value::undefined("No aggregated item, sequence was empty.");
  value best_key;
  bool first = true;
  for (const value& one : items_of(at, v)) {
    if (!at.step()) return {};
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
  text_maker out(at);
  bool first = true;
  for (const value& one : items_of(at, v)) {
    if (!first && !out.add(between)) return {};
    first = false;
    const value part = absent(a[1]) ? one : member(at, one, a[1]);
    if (!(part.is(kind::text) ? at.step() && out.add(part.marked()) : out.add(str(at, part))))
      return {};
  }
  return out.text();
}

value indent(rendering& at, const value& v, arguments& given) {
  const auto a = bind(at, "indent", given, {"width", "first", "blank"});
  if (!v.is(kind::text)) return at.wrong("indent needs a text");
  if (!at.read(v.text().size()) || !at.room(4 * v.text().size() + 192)) return {};
  marked_text by(std::string(4, ' '), origin::own);
  if (a[0].is(kind::text) && at.room(a[0].marked().cost())) by = a[0].marked();
  if (a[0].is_whole()) {
    const auto width = static_cast<uint64_t>(std::max<int64_t>(a[0].whole(), 0));
    if (!at.room(width)) return {};
    by = marked_text(std::string(width, ' '), origin::own);
  }
  marked_text whole;
  whole.reserve(v.text().size() + 1);
  whole.append(v.marked()).append("\n", origin::message);
  text_maker out(at);
  bool first = true;
  for (std::string_view rest = whole.bytes(); !rest.empty() && at.step();) {
    const std::string_view line = take_line(rest, false);
    // The new line end has the mark of the old one.
    const auto begin = static_cast<std::size_t>(line.data() - whole.bytes().data());
    if (!first) out.add("\n", whole.at(begin - 1));
    if (first ? truth(a[1]) : truth(a[2]) || !line.empty()) out.add(by);
    first = false;
    out.add(whole, line);
  }
  return out.text();
}

// Counts room and steps for parsing a number: one copy without underscores.
bool may_be_read(rendering& at, const std::string& text) {
  if (!at.read(2 * text.size()) || !at.room(3 * text.size() + 32)) return false;
  at.give_back(3 * text.size() + 32);
  return true;
}

value whole_number(rendering& at, const value& v, arguments& given) {
  const auto a = bind(at, "int", given, {"default", "base"});
  value otherwise = a[0].is(kind::undefined) ? value(int64_t{0}) : a[0];
  if (v.is_whole()) return v.whole();
  double d = 0;
  if (v.is(kind::text)) {
    if (!may_be_read(at, v.text())) return {};
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
  if (v.is(kind::text) && may_be_read(at, v.text()))
    if (const auto d = parse_float(v.text())) return *d;
  return a[0].is(kind::undefined) ? value(0.0) : a[0];
}

value rounded(rendering& at, const value& v, arguments& given) {
  const auto a = bind(at, "round", given, {"precision", "method"});
  if (!v.is_number()) return at.wrong("round needs a number");
  const int64_t digits = a[0].is_whole() ? a[0].whole() : 0;
  if (digits < 0 || digits > 20) return at.wrong("round needs 0 to 20 digits");
  const std::string_view how = a[1].is(kind::text) ? std::string_view(a[1].text()) : "common";
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
  for (const value& one : items_of(at, v)) {
    if (!at.ok()) return {};
    out = arithmetic(at, "+", out, absent(a[0]) ? one : member(at, one, a[0]));
  }
  return out;
}

// The arguments after the first `skip`, for a filter or test of each item.
arguments behind(rendering& at, const arguments& given, std::size_t skip) {
  const std::size_t n = given.positional.size() - skip;
  uint64_t names = 0;
  for (const auto& one : given.named) names += one.first.size() + sizeof(one);
  const uint64_t bytes = n * sizeof(value) + names;
  if (!at.step(bytes / 64) || !at.room(bytes)) return {};
  at.give_back(bytes);  // freed before the next item
  return {{given.positional.end() - static_cast<std::ptrdiff_t>(n), given.positional.end()},
          given.named};
}

value map(rendering& at, const value& v, arguments& given) {
  list_maker out(at);
  if (given.positional.empty()) {
    const auto a = bind(at, "map", given, {"attribute", "default"}, 1);
    for (const value& one : items_of(at, v)) {
      value got = member(at, one, a[0]);
      if (!out.add(got.is(kind::undefined) && !absent(a[1]) ? a[1] : std::move(got))) return {};
    }
    return out.list();
  }
  const std::string name = str(at, given.positional.front()).bytes();
  for (const value& one : items_of(at, v)) {
    arguments rest = behind(at, given, 1);
    if (!out.add(filtered(at, name, one, rest))) return {};
  }
  return out.list();
}

template <bool Attribute, bool Keep>
value select(rendering& at, const value& v, arguments& given) {
  const std::size_t skip = Attribute ? 1 : 0;
  if (given.positional.size() < skip) return at.wrong("the filter needs the name of an attribute");
  const bool by_test = given.positional.size() > skip;
  const std::string test = by_test ? str(at, given.positional[skip]).bytes() : "";
  list_maker out(at);
  for (const value& one : items_of(at, v)) {
    if (!at.step()) return {};
    const value judged = Attribute ? member(at, one, given.positional.front()) : one;
    bool yes = truth(judged);
    if (by_test) {
      arguments rest = behind(at, given, skip + 1);
      yes = at.ok() && tested(at, test, judged, rest);
    }
    if (yes == Keep) out.add(one);
  }
  return out.list();
}

value batch(rendering& at, const value& v, arguments& given) {
  const auto a = bind(at, "batch", given, {"linecount", "fill_with"}, 1);
  if (!a[0].is_whole() || a[0].whole() < 1) return at.wrong("batch needs a size of 1 or more");
  const auto size = static_cast<std::size_t>(a[0].whole());
  list_maker out(at);
  list_maker row(at);
  for (const value& one : items_of(at, v)) {
    if (!at.step() || !row.add(one)) return {};
    if (row.size() == size) out.add(row.list());
  }
  if (!row.empty()) {
    while (row.size() < size && !absent(a[1]) && at.step()) row.add(a[1]);
    out.add(row.list());
  }
  return out.list();
}

value tojson(rendering& at, const value& v, arguments& given) {
  const auto a = bind(at, "tojson", given, {"ensure_ascii", "indent", "separators", "sort_keys"});
  if (!absent(a[2])) return at.wrong("tojson takes no separators here");
  json_form form;
  form.ascii = truth(a[0]);
  form.sort_keys = truth(a[3]);
  form.indented = a[1].is_whole() || a[1].is(kind::text);
  if (a[1].is(kind::text) && at.room(a[1].text().size())) form.indent = a[1].text();
  if (a[1].is_whole()) {
    constexpr int64_t widest = 64;
    form.indent.assign(static_cast<std::size_t>(std::clamp<int64_t>(a[1].whole(), 0, widest)), ' ');
  }
  return at.kept(json_text(at, v, form));
}

value escaped(rendering& at, const value& v, arguments&) {
  const marked_text all = str(at, v);
  if (!at.read(all.size())) return {};
  text_maker out(at);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string_view c = std::string_view(all.bytes()).substr(i, 1);
    const std::string_view instead = c == "&"    ? "&amp;"
                                     : c == "<"  ? "&lt;"
                                     : c == ">"  ? "&gt;"
                                     : c == "'"  ? "&#39;"
                                     : c == "\"" ? "&#34;"
                                                 : c;
    out.add(instead, all.at(i));
  }
  return out.text();
}

template <bool Last>
value end_of(rendering& at, const value& v, arguments&) {
  if (v.is_sequence() && !v.items().empty()) return Last ? v.items().back() : v.items().front();
  const auto& none =
      Last ? "No last item, sequence was empty." : "No first item, sequence was empty.";
  if (v.is(kind::text) && !v.text().empty()) {
    const std::string_view text = v.text();
    const std::size_t n = (Last ? last_character(text) : first_character(text)).length;
    return at.copy(v.marked(), Last ? text.substr(text.size() - n) : text.substr(0, n));
  }
  if (v.is(kind::dict) && !v.entries().entries().empty())
    return Last ? v.entries().entries().back().first : v.entries().entries().front().first;
  (void)items_of(at, v);  // it reports an error if there are none
  return value::undefined(none);
}

value otherwise(rendering& at, const value& v, arguments& given) {
  const auto a = bind(at, "default", given, {"default_value", "boolean"});
  if (!v.is(kind::undefined) && !(truth(a[1]) && !truth(v))) return v;
  return given.positional.empty() && given.named.empty() ? value("") : a[0];
}

value reversed(rendering& at, const value& v, arguments&) {
  if (!v.is(kind::text)) {
    sequence all = items_of(at, v);
    std::ranges::reverse(all);
    return at.kept_list(std::move(all));
  }
  if (!at.read(v.text().size()) || !at.room(2 * v.text().size() + 64)) return {};
  marked_text out;
  out.reserve(v.text().size());
  for (std::string_view rest = v.text(); !rest.empty();) {
    const std::size_t n = last_character(rest).length;
    out.append(v.marked(), rest.substr(rest.size() - n));
    rest.remove_suffix(n);
  }
  return at.kept(std::move(out));
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
  for (const auto& [name, content] : given.named)
    if (!at.step() || !at.put(by_name, at.copy(name), content)) return {};
  return percent_formatted(
      at, str(at, v),
      given.named.empty() ? at.tuple(given.positional) : at.map(std::move(by_name)));
}

value pairs(rendering& at, const value& v, arguments&) {
  if (v.is(kind::undefined)) return at.list({});
  if (!v.is(kind::dict)) return at.wrong("items needs a dict");
  list_maker out(at);
  for (const auto& [key, content] : v.entries().entries())
    if (!at.step() || !out.add(at.tuple({key, content}))) return {};
  return out.list();
}

value with_replacements(rendering& at, const value& v, arguments& given) {
  const auto a = bind(at, "replace", given, {"old", "new", "count"}, 2);
  return replaced(at, str(at, v), str(at, a[0]).bytes(), str(at, a[1]),
                  a[2].is_whole() ? a[2].whole() : -1);
}

value trimmed(rendering& at, const value& v, arguments& given) {
  const auto a = bind(at, "trim", given, {"chars"});
  const marked_text text = str(at, v);
  if (absent(a[0])) return without_ends(at, text, side::both, std::nullopt);
  const marked_text characters = str(at, a[0]);
  return without_ends(at, text, side::both, characters.bytes());
}

const std::map<std::string, filter, std::less<>>& filters() {
  using r = rendering;
  using v = value;
  using a = arguments;
  static const std::map<std::string, filter, std::less<>> all = {
      {"abs", absolute},
      {"batch", batch},
      {"capitalize", [](r& at, const v& x, a&) { return changed(at, str(at, x), capitalized); }},
      {"count", length_of},
      {"d", otherwise},
      {"default", otherwise},
      {"dictsort", dictsort},
      {"e", escaped},
      {"escape", escaped},
      {"first", end_of<false>},
      {"float", real_number},
      {"format", formatted},
      {"indent", indent},
      {"int", whole_number},
      {"items", pairs},
      {"join", join},
      {"last", end_of<true>},
      {"length", length_of},
      {"list", [](r& at, const v& x, a&) { return at.kept_list(items_of(at, x)); }},
      {"lower", [](r& at, const v& x, a&) { return changed(at, str(at, x), to_lower); }},
      {"map", map},
      {"max", extreme<true>},
      {"min", extreme<false>},
      {"reject", select<false, false>},
      {"rejectattr", select<true, false>},
      {"replace", with_replacements},
      {"reverse", reversed},
      {"round", rounded},
      {"safe", [](r& at, const v& x, a&) { return at.kept(str(at, x)); }},
      {"select", select<false, true>},
      {"selectattr", select<true, true>},
      {"sort", sort},
      {"string", [](r& at, const v& x, a&) { return at.kept(str(at, x)); }},
      {"sum", sum},
      {"title", [](r& at, const v& x, a&) { return changed(at, str(at, x), titled_by_filter); }},
      {"tojson", tojson},
      {"trim", trimmed},
      {"unique", unique},
      {"upper", [](r& at, const v& x, a&) { return changed(at, str(at, x), to_upper); }},
  };
  return all;
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

std::vector<std::string> filter_names() {
  std::vector<std::string> out;
  for (const auto& [name, run] : filters()) out.push_back(name);
  return out;
}

}  // namespace bitnet::jinja
