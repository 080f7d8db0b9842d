#include "jinja/json_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "jinja/makers.hpp"
#include "jinja/operations.hpp"
#include "jinja/python_text.hpp"
#include "jinja/sorting.hpp"

namespace bitnet::jinja {
namespace {

using kind = value::kind;

class json_writer {
 public:
  json_writer(rendering& at, const json_form& form) : at_(at), form_(form), out_(at) {}

  marked_text run(const value& v) {
    any(v, 0);
    return out_.take().with_origin(all_);
  }

 private:
  void add(std::string_view text) { out_.add(text, origin::own); }

  void text(const marked_text& whole) {
    std::string_view s = whole.bytes();
    if (!at_.read(s.size())) return;
    if (whole.all() == origin::message) all_ = origin::message;
    add("\"");
    while (!s.empty() && at_.ok()) {
      std::size_t plain = 0;
      character next{};
      for (; plain < s.size(); plain += next.length) {
        next = first_character(s.substr(plain));
        if (is_escaped(next.code)) break;
      }
      add(s.substr(0, plain));
      s.remove_prefix(plain);
      if (s.empty()) break;
      add(escape(next.code));
      s.remove_prefix(next.length);
    }
    add("\"");
  }

  [[nodiscard]] bool is_escaped(char32_t c) const {
    return c < 0x20 || c == '"' || c == '\\' || (form_.ascii && c >= 0x7f);
  }

  static std::string escape(char32_t c) {
    constexpr std::string_view named = "\"\\\n\r\t\f\b";
    constexpr std::string_view names = "\"\\nrtfb";
    if (const auto i = c < 0x80 ? named.find(static_cast<char>(c)) : std::string_view::npos;
        i != std::string_view::npos)
      return {'\\', names[i]};
    if (c < 0x10000) return fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    const uint32_t beyond = static_cast<uint32_t>(c) - 0x10000;
    return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (beyond >> 10U), 0xDC00 + (beyond & 0x3FFU));
  }

  void number(double d) {
    if (std::isnan(d))
      add("NaN");
    else if (std::isinf(d))
      add(d < 0 ? "-Infinity" : "Infinity");
    else
      add(float_text(d));
  }

  void key(const value& v) {
    switch (v.what()) {
      case kind::text:
        return text(v.marked());
      case kind::boolean:
        all_ = origin::message;
        return add(v.boolean() ? "\"true\"" : "\"false\"");
      case kind::none:
        all_ = origin::message;
        return add("\"null\"");
      default:
        add("\"");
        any(v, 0);
        add("\"");
    }
  }

  void new_line(uint32_t depth) {
    if (!form_.indented) return;
    add("\n");
    for (uint32_t i = 0; i < depth && at_.step(); ++i) add(form_.indent);
  }

  void between(bool& first, uint32_t depth) {
    if (!first) add(form_.indented ? "," : ", ");
    first = false;
    new_line(depth);
  }

  void any(const value& v, uint32_t depth) {
    if (!at_.step()) return;
    bool first = true;
    if (!v.is(kind::text) && !v.is_sequence() && !v.is(kind::dict)) all_ = origin::message;
    switch (v.what()) {
      case kind::none:
        return add("null");
      case kind::boolean:
        return add(v.boolean() ? "true" : "false");
      case kind::integer:
        return add(std::to_string(v.whole()));
      case kind::real:
        return number(v.number());
      case kind::text:
        return text(v.marked());
      case kind::list:
      case kind::tuple:
        add("[");
        for (const value& one : v.items()) {
          if (!at_.ok()) return;
          between(first, depth + 1);
          any(one, depth + 1);
        }
        if (!first) new_line(depth);
        return add("]");
      case kind::dict: {
        add("{");
        const auto& all = v.entries().entries();
        if (!at_.room(form_.sort_keys ? 4 * all.size() * sizeof(void*) + 64 : 0)) return;
        std::vector<const dict::entry*> sorted;
        for (std::size_t i = 0; form_.sort_keys && i < all.size(); ++i) sorted.push_back(&all[i]);
        sort_in_order(sorted,
                      [&](const auto* a, const auto* b) { return less(at_, a->first, b->first); });
        for (std::size_t i = 0; i < all.size() && at_.ok(); ++i) {
          const auto& [name, content] = form_.sort_keys ? *sorted[i] : all[i];
          between(first, depth + 1);
          key(name);
          add(": ");
          any(content, depth + 1);
        }
        if (!at_.ok()) return;
        if (!first) new_line(depth);
        return add("}");
      }
      default:
        at_.wrong(fmt::format("a '{}' cannot be written as JSON", type_name(v)));
    }
  }

  rendering& at_;
  const json_form& form_;
  text_maker out_;
  origin all_ = origin::own;
};

}  // namespace

marked_text json_text(rendering& at, const value& v, const json_form& form) {
  return json_writer(at, form).run(v);
}

}  // namespace bitnet::jinja
