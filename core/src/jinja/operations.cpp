#include "jinja/operations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "jinja/arithmetic.hpp"
#include "jinja/finding.hpp"
#include "jinja/makers.hpp"
#include "jinja/methods.hpp"
#include "jinja/python_text.hpp"

namespace bitnet::jinja {
namespace {

using kind = value::kind;

// Writes str() and repr().
class writer {
 public:
  explicit writer(rendering& at) : at_(at), out_(at) {}

  marked_text written(const value& v, bool as_repr) {
    if (v.is(kind::text) && !as_repr)
      return at_.step() && at_.room(v.marked().cost()) ? v.marked() : marked_text();
    write(v, as_repr);
    return out_.take().with_origin(all_);
  }

 private:
  void write(const value& v, bool as_repr) {
    if (!at_.step()) return;
    if (!v.is(kind::text) && !v.is_sequence() && !v.is(kind::dict)) all_ = origin::message;
    switch (v.what()) {
      case kind::undefined:
        return add(as_repr ? "Undefined" : "");
      case kind::none:
        return add("None");
      case kind::boolean:
        return add(v.boolean() ? "True" : "False");
      case kind::integer:
        return add(std::to_string(v.whole()));
      case kind::real:
        return add(float_text(v.number()));
      case kind::text:
        if (!at_.scan(v.text().size())) return;
        if (v.marked().all() == origin::message) all_ = origin::message;
        return add_quoted(v.text());
      case kind::list:
        return add_items("[", v.items(), "]");
      case kind::tuple:
        return add_items("(", v.items(), v.items().size() == 1 ? ",)" : ")");
      case kind::dict:
        return add_entries(v.entries());
      case kind::object:
        return add(fmt::format("<{}>", v.thing().type_name()));
      case kind::function:
        return add(fmt::format("<function {}>", v.code().name));
    }
  }

  void add(std::string_view text) { out_.add(text, origin::own); }

  void add_quoted(std::string_view rest) {
    if (!at_.read(rest.size())) return;
    const char quote = quote_of(rest);
    add({&quote, 1});
    while (!rest.empty() && at_.ok()) {
      std::size_t plain = 0;
      character next{};
      for (; plain < rest.size(); plain += next.length) {
        next = first_character(rest.substr(plain));
        if (!is_quoted_plainly(next.code, quote)) break;
      }
      add(rest.substr(0, plain));
      rest.remove_prefix(plain);
      if (rest.empty()) break;
      add(quoted_character(next.code));
      rest.remove_prefix(next.length);
    }
    add({&quote, 1});
  }

  void add_items(std::string_view opening, const sequence& all, std::string_view closing) {
    add(opening);
    bool first = true;
    for (const value& one : all) {
      if (!at_.ok()) return;
      if (!first) add(", ");
      first = false;
      write(one, true);
    }
    add(closing);
  }

  void add_entries(const dict& all) {
    add("{");
    bool first = true;
    for (const auto& [key, content] : all.entries()) {
      if (!at_.ok()) return;
      if (!first) add(", ");
      first = false;
      write(key, true);
      add(": ");
      write(content, true);
    }
    add("}");
  }

  rendering& at_;
  text_maker out_;
  origin all_ = origin::own;
};

bool orderable(const value& a, const value& b) {
  return (a.is_number() && b.is_number()) || (a.is(kind::text) && b.is(kind::text)) ||
         (a.is_sequence() && a.what() == b.what());
}

// Resolves a Python index, negative from the end; nullopt: out of range.
std::optional<std::size_t> place(int64_t index, std::size_t size) {
  if (index < 0) index += static_cast<int64_t>(size);
  if (index < 0 || index >= static_cast<int64_t>(size)) return std::nullopt;
  return static_cast<std::size_t>(index);
}

value not_there(rendering& at, const value& of, const std::string& name) {
  const std::string type = of.is(kind::none) ? "None" : fmt::format("'{}' object", type_name(of));
  constexpr std::size_t longest_quote = 80;
  return at.undefined(fmt::format("{} has no attribute '{}'", type, name.substr(0, longest_quote)));
}

// The character at an index, negative from the end.
std::optional<std::string_view> character_at(rendering& at, std::string_view text, int64_t index) {
  if (!at.read(std::min<uint64_t>(text.size(), 4 * static_cast<uint64_t>(std::abs(index / 2)))))
    return std::nullopt;
  for (; index < -1 && !text.empty(); ++index) text.remove_suffix(last_character(text).length);
  if (text.empty()) return std::nullopt;
  if (index < 0) return text.substr(text.size() - last_character(text).length);
  const std::size_t begin = bytes_of(text, static_cast<uint64_t>(index));
  if (begin >= text.size()) return std::nullopt;
  return text.substr(begin, first_character(text.substr(begin)).length);
}

// The part of a text: `count` characters from the k-th on.
value part_of(rendering& at, const marked_text& of, uint64_t k, uint64_t count) {
  if (count == 0) return at.copy("");
  std::string_view text = of.bytes();
  text.remove_prefix(bytes_of(text, k));
  return at.copy(of, text.substr(0, bytes_of(text, count)));
}

}  // namespace

std::string type_name(const value& v) {
  switch (v.what()) {
    case kind::undefined:
      return "Undefined";
    case kind::none:
      return "NoneType";
    case kind::boolean:
      return "bool";
    case kind::integer:
      return "int";
    case kind::real:
      return "float";
    case kind::text:
      return "str";
    case kind::list:
      return "list";
    case kind::tuple:
      return "tuple";
    case kind::dict:
      return "dict";
    case kind::object:
      return std::string(v.thing().type_name());
    case kind::function:
      return "function";
  }
  return "";
}

bool truth(const value& v) {
  switch (v.what()) {
    case kind::undefined:
    case kind::none:
      return false;
    case kind::boolean:
      return v.boolean();
    case kind::integer:
      return v.whole() != 0;
    case kind::real:
      return v.number() != 0;
    case kind::text:
      return !v.text().empty();
    case kind::list:
    case kind::tuple:
      return !v.items().empty();
    case kind::dict:
      return !v.entries().entries().empty();
    case kind::object:
    case kind::function:
      return true;
  }
  return false;
}

bool equal(rendering& at, const value& a, const value& b) {
  if (!at.step()) return false;
  if (a.is_number() && b.is_number()) {
    if (a.is_whole() && b.is_whole()) return a.whole() == b.whole();
    return a.number() == b.number();
  }
  if (a.what() != b.what()) return false;
  switch (a.what()) {
    case kind::text:
      return a.text().size() == b.text().size() && at.step(a.text().size() / 256) &&
             a.text() == b.text();
    case kind::list:
    case kind::tuple:
      return std::ranges::equal(a.items(), b.items(),
                                [&](const value& x, const value& y) { return equal(at, x, y); });
    case kind::dict: {
      if (a.entries().entries().size() != b.entries().entries().size()) return false;
      return std::ranges::all_of(a.entries().entries(), [&](const dict::entry& one) {
        if (!at.look_up(b.entries(), one.first)) return false;
        const value* other = b.entries().find(one.first);
        return other != nullptr && equal(at, one.second, *other);
      });
    }
    default:
      return a.same_as(b);
  }
}

bool less(rendering& at, const value& a, const value& b, std::string_view sign) {
  if (!at.step()) return false;
  if (!orderable(a, b)) {
    unsupported(at, sign, a, b);
    return false;
  }
  if (a.is_number()) {
    if (a.is_whole() && b.is_whole()) return a.whole() < b.whole();
    return a.number() < b.number();
  }
  if (a.is(kind::text))
    return at.step(std::min(a.text().size(), b.text().size()) / 256) && a.text() < b.text();
  const std::size_t common = std::min(a.items().size(), b.items().size());
  for (std::size_t i = 0; i < common; ++i)
    if (!equal(at, a.items()[i], b.items()[i])) return less(at, a.items()[i], b.items()[i], sign);
  return a.items().size() < b.items().size();
}

bool contains(rendering& at, const value& all, const value& one) {
  switch (all.what()) {
    case kind::text:
      if (!one.is(kind::text)) {
        at.wrong(fmt::format("'in <string>' needs a text on its left, not '{}'", type_name(one)));
        return false;
      }
      return at.step() && text_finder(at, one.text()).in(all.text()) != std::string::npos;
    case kind::list:
    case kind::tuple:
      return std::ranges::any_of(all.items(), [&](const value& v) { return equal(at, v, one); });
    case kind::dict:
      if (!may_be_key(one) && !one.is(kind::undefined)) {
        at.wrong(fmt::format("a '{}' cannot be a key", type_name(one)));
        return false;
      }
      return at.look_up(all.entries(), one) && all.entries().find(one) != nullptr;
    case kind::undefined:
      return false;
    default:
      at.wrong(fmt::format("'in' needs a text, a list or a dict on its right, not '{}'",
                           type_name(all)));
      return false;
  }
}

bool compare(rendering& at, const value& a, std::string_view sign, const value& b) {
  if (sign == "==") return equal(at, a, b);
  if (sign == "!=") return !equal(at, a, b);
  if (sign == "in") return contains(at, b, a);
  if (sign == "not in") return !contains(at, b, a);
  const bool numbers = a.is_number() && b.is_number();
  if (numbers && (std::isnan(a.number()) || std::isnan(b.number()))) return false;
  if (sign == "<") return less(at, a, b, sign);
  if (sign == ">") return less(at, b, a, sign);
  if (sign == "<=") return !less(at, b, a, sign);
  return !less(at, a, b, sign);
}

marked_text str(rendering& at, const value& v) {
  return writer(at).written(v, false);
}

marked_text repr(rendering& at, const value& v) {
  return writer(at).written(v, true);
}

uint64_t length(rendering& at, const value& v) {
  switch (v.what()) {
    case kind::undefined:
      return 0;
    case kind::text:
      return at.step() && at.read(v.text().size()) ? count_characters(v.text()) : 0;
    case kind::list:
    case kind::tuple:
      return v.items().size();
    case kind::dict:
      return v.entries().entries().size();
    default:
      at.wrong(fmt::format("a '{}' has no length", type_name(v)));
      return 0;
  }
}

sequence items_of(rendering& at, const value& v) {
  list_maker out(at);
  switch (v.what()) {
    case kind::undefined:
      return {};
    case kind::list:
    case kind::tuple:
      if (!at.step(v.items().size() / 16) || !at.room(v.items().size() * sizeof(value) + 32))
        return {};
      return v.items();
    case kind::dict:
      if (!out.reserve(v.entries().entries().size()) || !at.step(out.items().capacity() / 16))
        return {};
      for (const auto& one : v.entries().entries()) out.add(one.first);
      return out.take();
    case kind::text: {
      std::string_view rest = v.text();
      while (!rest.empty() && at.step()) {
        const std::size_t n = first_character(rest).length;
        if (!out.add(at.copy(v.marked(), rest.substr(0, n)))) return {};
        rest.remove_prefix(n);
      }
      return out.take();
    }
    default:
      at.wrong(fmt::format("a '{}' cannot be gone through item by item", type_name(v)));
      return {};
  }
}

value item(rendering& at, const value& of, const value& index) {
  if (!at.step()) return {};
  if (of.is(kind::undefined)) return at.wrong(of.why_undefined());
  if (of.is(kind::dict)) {
    if (!at.look_up(of.entries(), index)) return {};
    if (const value* found = of.entries().find(index)) return *found;
  } else if (index.is_whole() && of.is_sequence()) {
    if (const auto i = place(index.whole(), of.items().size())) return of.items()[*i];
  } else if (index.is_whole() && of.is(kind::text)) {
    if (const auto one = character_at(at, of.text(), index.whole()))
      return at.copy(of.marked(), *one);
    if (!at.ok()) return {};
  }
  if (index.is(kind::text)) {
    if (auto found = method(at, of, index.text())) return *std::move(found);
    return not_there(at, of, index.text());
  }
  return at.undefined(fmt::format("a '{}' has no such item", type_name(of)));
}

value slice(rendering& at, const value& of, const value& from, const value& to, const value& step) {
  const auto is_bound = [](const value& v) {
    return v.is(kind::undefined) || v.is(kind::none) || v.is_whole();
  };
  if (of.is(kind::undefined)) return at.wrong(of.why_undefined());
  if (!of.is(kind::text) && !of.is_sequence())
    return at.wrong(fmt::format("a '{}' cannot be sliced", type_name(of)));
  if (!is_bound(from) || !is_bound(to) || !is_bound(step))
    return at.wrong("the bounds of a slice must be integers");
  const int64_t by = step.is_whole() ? step.whole() : 1;
  if (by == 0) return at.wrong("the step of a slice cannot be 0");
  if (of.is(kind::text) && !at.read(of.text().size())) return {};
  const auto size =
      static_cast<int64_t>(of.is(kind::text) ? count_characters(of.text()) : of.items().size());
  const auto clamped = [&](const value& v, int64_t otherwise) {
    if (!v.is_whole()) return otherwise;
    int64_t i = v.whole();
    if (i < 0) i = i < -size ? -1 : i + size;
    return std::clamp<int64_t>(i, by < 0 ? -1 : 0, by < 0 ? size - 1 : size);
  };
  // Python clamps a bound before the start to 0, or to -1 for a negative step.
  const int64_t begin = clamped(from, by < 0 ? size - 1 : 0);
  const int64_t end = clamped(to, by < 0 ? -1 : size);
  const int64_t distance = by > 0 ? end - begin : begin - end;
  const uint64_t stride =
      by > 0 ? static_cast<uint64_t>(by) : uint64_t{0} - static_cast<uint64_t>(by);
  const uint64_t count =
      distance <= 0 ? 0 : (static_cast<uint64_t>(distance) + stride - 1) / stride;
  if (!at.step(1 + count / 8)) return {};
  const auto nth = [&](uint64_t k) {
    const auto offset = static_cast<int64_t>(k * stride);
    return static_cast<std::size_t>(by > 0 ? begin + offset : begin - offset);
  };
  if (of.is(kind::text)) {
    const std::string_view text = of.text();
    if (by == 1 || count == 0) return part_of(at, of.marked(), static_cast<uint64_t>(begin), count);
    if (!at.room((static_cast<uint64_t>(size) + 1) * sizeof(std::size_t) + 2 * text.size() + 64))
      return {};
    const std::vector<std::size_t> at_byte = borders(text, static_cast<std::size_t>(size));
    marked_text out;
    out.reserve(text.size());
    for (uint64_t k = 0; k < count; ++k)
      out.append(of.marked(), text.substr(at_byte[nth(k)], at_byte[nth(k) + 1] - at_byte[nth(k)]));
    return at.kept(std::move(out));
  }
  list_maker out(at);
  if (!out.reserve(count)) return {};
  for (uint64_t k = 0; k < count; ++k) out.add(of.items()[nth(k)]);
  return of.is(kind::tuple) ? out.tuple() : out.list();
}

value attribute(rendering& at, const value& of, const std::string& name) {
  if (!at.step()) return {};
  if (of.is(kind::undefined)) return at.wrong(of.why_undefined());
  if (auto found = method(at, of, name)) return *std::move(found);
  if (of.is(kind::dict)) {
    if (!at.look_up(name.size(), of.entries().entries().size())) return {};
    if (const value* found = of.entries().find(std::string_view(name))) return *found;
  }
  return not_there(at, of, name);
}

value call(rendering& at, const value& what, arguments& given) {
  const rendering::level deeper(at);
  if (!at.step()) return {};
  if (what.is(kind::function)) return what.code().body(at, given);
  if (what.is(kind::undefined)) return at.wrong(what.why_undefined());
  return at.wrong(fmt::format("a '{}' cannot be called", type_name(what)));
}

}  // namespace bitnet::jinja
