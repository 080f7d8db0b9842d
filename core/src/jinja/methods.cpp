#include "jinja/methods.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "jinja/binding.hpp"
#include "jinja/finding.hpp"
#include "jinja/makers.hpp"
#include "jinja/operations.hpp"
#include "jinja/python_text.hpp"
#include "jinja/replacing.hpp"

namespace bitnet::jinja {
namespace {

using kind = value::kind;
using own_method = value (*)(rendering&, const value& self, const arguments&);
using table = std::map<std::string, own_method, std::less<>>;

// Returns the argument's text; if it is no text, "" and an error.
const std::string& need_text(rendering& at, const value& v) {
  static const std::string none;
  if (v.is(kind::text)) return v.text();
  at.wrong(fmt::format("expected a text, found '{}'", type_name(v)));
  return none;
}

value strip(rendering& at, const value& self, const arguments& given, side where) {
  const auto a = bind(at, "strip", given, {"chars"});
  if (absent(a[0])) return without_ends(at, self.marked(), where, std::nullopt);
  return without_ends(at, self.marked(), where, need_text(at, a[0]));
}

value split(rendering& at, const value& self, const arguments& given, bool from_right) {
  const auto a = bind(at, "split", given, {"sep", "maxsplit"});
  int64_t most = a[1].is_whole() ? a[1].whole() : -1;
  if (most < 0) most = INT64_MAX;
  list_maker out(at);
  std::string_view rest = self.text();
  const auto give = [&](std::string_view piece) { return out.add(at.copy(self.marked(), piece)); };
  if (absent(a[0])) {
    if (!at.read(rest.size())) return {};
    const auto space = [](std::string_view text, bool last) {
      return is_space(last ? last_character(text).code : first_character(text).code);
    };
    for (;;) {
      rest = stripped(rest, from_right ? side::right : side::left);
      if (rest.empty() || !at.step()) break;
      if (static_cast<int64_t>(out.size()) >= most) {
        give(stripped(rest, from_right ? side::left : side::right));
        break;
      }
      std::string_view word = rest;
      while (!rest.empty() && !space(rest, from_right)) {
        if (from_right)
          rest.remove_suffix(last_character(rest).length);
        else
          rest.remove_prefix(first_character(rest).length);
      }
      give(from_right ? word.substr(rest.size()) : word.substr(0, word.size() - rest.size()));
    }
  } else {
    const std::string& border = need_text(at, a[0]);
    if (border.empty()) return at.wrong("split needs a separator that is not empty");
    text_finder finder(at, border,
                       from_right ? text_finder::way::backwards : text_finder::way::forwards);
    while (static_cast<int64_t>(out.size()) < most && at.step()) {
      const auto found = finder.in(rest);
      if (found == std::string_view::npos) break;
      give(from_right ? rest.substr(found + border.size()) : rest.substr(0, found));
      rest = from_right ? rest.substr(0, found) : rest.substr(found + border.size());
    }
    give(rest);
  }
  if (from_right) std::ranges::reverse(out.items());
  return out.list();
}

// The part in which a method searches: `text`, which begins at character `first`; or nothing.
struct place_to_look {
  int64_t first = 0;
  std::optional<std::string_view> text;
};

// Arguments start and end of a method: integers, None, or not given.
place_to_look between(rendering& at, std::string_view text, const value& start, const value& end) {
  if (absent(start) && absent(end)) return {0, text};
  if ((!absent(start) && !start.is_whole()) || (!absent(end) && !end.is_whole())) {
    at.wrong("start and end must be integers or None");
    return {};
  }
  if (!at.step() || !at.read(2 * text.size())) return {};
  const auto size = static_cast<int64_t>(count_characters(text));
  const auto counted = [&](int64_t i) { return i < 0 ? std::max<int64_t>(i + size, 0) : i; };
  const int64_t from = absent(start) ? 0 : counted(start.whole());
  const int64_t to = absent(end) ? size : std::min(counted(end.whole()), size);
  if (from > to) return {};
  const std::string_view rest = text.substr(bytes_of(text, static_cast<uint64_t>(from)));
  return {from, rest.substr(0, bytes_of(rest, static_cast<uint64_t>(to - from)))};
}

value has_end(rendering& at, const value& self, const arguments& given, bool at_end) {
  const auto a = bind(at, at_end ? "endswith" : "startswith", given, {"", "", ""}, 1);
  const auto where = between(at, self.text(), a[1], a[2]).text;
  const auto fits = [&](const value& one) {
    const std::string& part = need_text(at, one);
    return where && at.step() && at.step(part.size() / 256) &&
           (at_end ? where->ends_with(part) : where->starts_with(part)) && at.ok();
  };
  return a[0].is(kind::tuple) ? std::ranges::any_of(a[0].items(), fits) : fits(a[0]);
}

value position(rendering& at, const value& self, const arguments& given, bool last) {
  const auto a = bind(at, "find", given, {"", "", ""}, 1);
  const std::string& part = need_text(at, a[0]);
  if (!at.step()) return {};
  const place_to_look where = between(at, self.text(), a[1], a[2]);
  if (!where.text) return int64_t{-1};
  using way = text_finder::way;
  const auto found = text_finder(at, part, last ? way::backwards : way::forwards).in(*where.text);
  if (found == std::string::npos || !at.read(found)) return int64_t{-1};
  return where.first + static_cast<int64_t>(count_characters(where.text->substr(0, found)));
}

value needed_position(rendering& at, const value& self, const arguments& given, bool last) {
  value found = position(at, self, given, last);
  if (at.ok() && found.whole() < 0) return at.wrong("the text has no such part");
  return found;
}

value count_in_text(rendering& at, const value& self, const arguments& given) {
  const auto a = bind(at, "count", given, {"", "", ""}, 1);
  const std::string& part = need_text(at, a[0]);
  const auto where = between(at, self.text(), a[1], a[2]).text;
  if (!where) return int64_t{0};
  if (part.empty())
    return at.read(where->size()) ? static_cast<int64_t>(count_characters(*where) + 1) : value();
  text_finder finder(at, part);
  std::string_view rest = *where;
  int64_t n = 0;
  for (auto i = finder.in(rest); i != std::string_view::npos && at.step(); i = finder.in(rest)) {
    rest.remove_prefix(i + part.size());
    ++n;
  }
  return n;
}

// Splits into the text before, at and behind the first or last match.
value partition(rendering& at, const value& self, const arguments& given, bool last) {
  const auto a = bind(at, "partition", given, {""}, 1);
  const std::string& part = need_text(at, a[0]);
  if (!at.step()) return {};
  if (part.empty()) return at.wrong("partition needs a separator that is not empty");
  const std::string& text = self.text();
  using way = text_finder::way;
  const auto found = text_finder(at, part, last ? way::backwards : way::forwards).in(text);
  if (found == std::string::npos)
    return last ? at.tuple({at.copy(""), at.copy(""), self})
                : at.tuple({self, at.copy(""), at.copy("")});
  const std::string_view all = text;
  return at.tuple({at.copy(self.marked(), all.substr(0, found)),
                   at.copy(self.marked(), all.substr(found, part.size())),
                   at.copy(self.marked(), all.substr(found + part.size()))});
}

// Arguments start and stop of list.index: integers or not given.
value index_in_list(rendering& at, const value& self, const arguments& given) {
  const auto a = bind(at, "index", given, {"", "", ""}, 1);
  const sequence& all = self.items();
  const auto size = static_cast<int64_t>(all.size());
  const auto counted = [&](const value& v, int64_t otherwise) {
    if (v.is(kind::undefined)) return otherwise;
    if (!v.is_whole()) at.wrong("start and stop must be integers");
    const int64_t i = v.is_whole() ? v.whole() : 0;
    return std::min(i < 0 ? std::max<int64_t>(i + size, 0) : i, size);
  };
  const int64_t stop = counted(a[2], size);
  for (int64_t i = counted(a[1], 0); i < stop && at.ok(); ++i)
    if (equal(at, all[static_cast<std::size_t>(i)], a[0])) return i;
  return at.wrong("the list has no such item");
}

template <bool (*Is)(char32_t)>
value all_are(rendering& at, const value& self, const arguments&) {
  std::string_view rest = self.text();
  if (!at.step(1 + rest.size() / 16)) return {};
  while (!rest.empty()) {
    const character one = first_character(rest);
    if (!Is(one.code)) return false;
    rest.remove_prefix(one.length);
  }
  return !self.text().empty();
}

template <bool (*Is)(char32_t), bool (*Not)(char32_t)>
value cased(rendering& at, const value& self, const arguments&) {
  std::string_view rest = self.text();
  if (!at.step(1 + rest.size() / 16)) return {};
  bool any = false;
  while (!rest.empty()) {
    const character one = first_character(rest);
    if (Not(one.code)) return false;
    any = any || Is(one.code);
    rest.remove_prefix(one.length);
  }
  return any;
}

value text_replace(rendering& at, const value& self, const arguments& given) {
  const auto a = bind(at, "replace", given, {"old", "new", "count"}, 2);
  const std::string& old = need_text(at, a[0]);
  need_text(at, a[1]);
  if (!at.ok()) return {};
  return replaced(at, self.marked(), old, a[1].marked(), a[2].is_whole() ? a[2].whole() : -1);
}

value text_join(rendering& at, const value& self, const arguments& given) {
  const auto a = bind(at, "join", given, {"items"}, 1);
  text_maker out(at);
  bool first = true;
  for (const value& one : items_of(at, a[0])) {
    need_text(at, one);
    if (!at.step() || (!first && !out.add(self.marked())) || !out.add(one.marked())) return {};
    first = false;
  }
  return out.text();
}

const table& of_text() {
  using r = rendering;
  using v = value;
  using a = const arguments;
  static const table all = {
      {"strip", [](r& at, const v& s, a& g) { return strip(at, s, g, side::both); }},
      {"lstrip", [](r& at, const v& s, a& g) { return strip(at, s, g, side::left); }},
      {"rstrip", [](r& at, const v& s, a& g) { return strip(at, s, g, side::right); }},
      {"split", [](r& at, const v& s, a& g) { return split(at, s, g, false); }},
      {"rsplit", [](r& at, const v& s, a& g) { return split(at, s, g, true); }},
      {"startswith", [](r& at, const v& s, a& g) { return has_end(at, s, g, false); }},
      {"endswith", [](r& at, const v& s, a& g) { return has_end(at, s, g, true); }},
      {"find", [](r& at, const v& s, a& g) { return position(at, s, g, false); }},
      {"rfind", [](r& at, const v& s, a& g) { return position(at, s, g, true); }},
      {"index", [](r& at, const v& s, a& g) { return needed_position(at, s, g, false); }},
      {"rindex", [](r& at, const v& s, a& g) { return needed_position(at, s, g, true); }},
      {"partition", [](r& at, const v& s, a& g) { return partition(at, s, g, false); }},
      {"rpartition", [](r& at, const v& s, a& g) { return partition(at, s, g, true); }},
      {"upper", [](r& at, const v& s, a&) { return changed(at, s.marked(), to_upper); }},
      {"lower", [](r& at, const v& s, a&) { return changed(at, s.marked(), to_lower); }},
      {"title", [](r& at, const v& s, a&) { return changed(at, s.marked(), titled); }},
      {"capitalize", [](r& at, const v& s, a&) { return changed(at, s.marked(), capitalized); }},
      {"replace", text_replace},
      {"join", text_join},
      {"isdigit", all_are<is_digit>},
      {"isalpha", all_are<is_letter>},
      {"isspace", all_are<is_space>},
      {"isupper", cased<is_upper, is_lower>},
      {"islower", cased<is_lower, is_upper>},
      {"count", count_in_text},
      {"removeprefix",
       [](r& at, const v& s, a& g) {
         const auto b = bind(at, "removeprefix", g, {"prefix"}, 1);
         const std::string& part = need_text(at, b[0]);
         const std::string_view whole = s.text();
         if (!at.scan(part.size()) || !whole.starts_with(part)) return s;
         return at.copy(s.marked(), whole.substr(part.size()));
       }},
      {"removesuffix",
       [](r& at, const v& s, a& g) {
         const auto b = bind(at, "removesuffix", g, {"suffix"}, 1);
         const std::string& part = need_text(at, b[0]);
         const std::string_view whole = s.text();
         if (!at.scan(part.size()) || !whole.ends_with(part)) return s;
         return at.copy(s.marked(), whole.substr(0, whole.size() - part.size()));
       }},
      {"splitlines",
       [](r& at, const v& s, a& g) {
         const auto b = bind(at, "splitlines", g, {"keepends"});
         list_maker out(at);
         if (!at.read(s.text().size())) return v();
         for (std::string_view rest = s.text(); !rest.empty() && at.step();)
           out.add(at.copy(s.marked(), take_line(rest, truth(b[0]))));
         return out.list();
       }},
  };
  return all;
}

value pairs(rendering& at, const value& self, const arguments&) {
  list_maker out(at);
  for (const auto& [key, content] : self.entries().entries())
    if (!at.step() || !out.add(at.tuple({key, content}))) return {};
  return out.list();
}

const table& of_dict() {
  using r = rendering;
  using v = value;
  using a = const arguments;
  static const table all = {
      {"items", pairs},
      {"keys", [](r& at, const v& s, a&) { return at.kept_list(items_of(at, s)); }},
      {"values",
       [](r& at, const v& s, a&) {
         list_maker out(at);
         if (!at.step(s.entries().entries().size() / 16)) return v();
         for (const auto& one : s.entries().entries())
           if (!out.add(one.second)) return v();
         return out.list();
       }},
      {"get",
       [](r& at, const v& s, a& g) {
         const auto b = bind(at, "get", g, {"key", "default"}, 1);
         if (!at.look_up(s.entries(), b[0])) return v();
         if (const v* found = s.entries().find(b[0])) return *found;
         return g.positional.size() > 1 ? b[1] : v::none();
       }},
      {"copy", [](r&, const v& s, a&) { return s; }},
  };
  return all;
}

const table& of_list() {
  using r = rendering;
  using v = value;
  using a = const arguments;
  static const table all = {
      {"count",
       [](r& at, const v& s, a& g) {
         const auto b = bind(at, "count", g, {""}, 1);
         int64_t n = 0;
         for (const v& one : s.items()) n += equal(at, one, b[0]) ? 1 : 0;
         return v(n);
       }},
      {"index", index_in_list},
      {"copy", [](r&, const v& s, a&) { return s; }},
  };
  return all;
}

constexpr std::array<std::string_view, 13> changing = {
    "append", "clear", "extend",  "insert",     "pop",    "remove", "reverse",
    "sort",   "add",   "popitem", "setdefault", "update", "discard"};

}  // namespace

std::vector<std::string> method_names() {
  std::vector<std::string> out;
  for (const auto& [type, all] :
       {std::pair("str", &of_text()), std::pair("dict", &of_dict()), std::pair("list", &of_list())})
    for (const auto& [name, run] : *all) out.push_back(fmt::format("{}.{}", type, name));
  return out;
}

std::optional<value> method(rendering& at, const value& of, const std::string& name) {
  if (of.is(kind::object)) return of.thing().attribute(at, name);
  const table* all = of.is(kind::text)   ? &of_text()
                     : of.is(kind::dict) ? &of_dict()
                     : of.is_sequence()  ? &of_list()
                                         : nullptr;
  if (all == nullptr) return std::nullopt;
  if (const auto found = all->find(name); found != all->end()) {
    const own_method run = found->second;
    return at.code(
        function{name, [of, run](rendering& in, arguments& given) { return run(in, of, given); }});
  }
  const bool changes = std::ranges::find(changing, name) != changing.end();
  if (changes && (of.is(kind::list) ||
                  (of.is(kind::dict) && of.entries().find(std::string_view(name)) == nullptr)))
    return at.undefined(fmt::format("access to '{}' of a '{}' is rejected, as it would change it",
                                    name, type_name(of)));
  return std::nullopt;
}

}  // namespace bitnet::jinja
