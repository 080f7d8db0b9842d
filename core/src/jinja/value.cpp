#include "jinja/value.hpp"

#include <algorithm>
#include <cmath>

#include "jinja/python_text.hpp"

namespace bitnet::jinja {

value::value(jinja::dict d) : held_(std::make_shared<const jinja::dict>(std::move(d))) {}

value value::sequence_of(sequence items, bool tuple) {
  uint32_t depth = 0;
  for (const value& one : items) depth = std::max(depth, one.depth());
  value v;
  v.held_ = std::make_shared<const list_body>(list_body{std::move(items), depth + 1, tuple});
  return v;
}

value value::list(sequence items) {
  return sequence_of(std::move(items), false);
}

value value::tuple(sequence items) {
  return sequence_of(std::move(items), true);
}

value::kind value::what() const {
  struct visitor {
    kind operator()(const missing&) const { return kind::undefined; }
    kind operator()(nothing) const { return kind::none; }
    kind operator()(bool) const { return kind::boolean; }
    kind operator()(int64_t) const { return kind::integer; }
    kind operator()(double) const { return kind::real; }
    kind operator()(const shared_text&) const { return kind::text; }
    kind operator()(const shared_list& l) const { return l->tuple ? kind::tuple : kind::list; }
    kind operator()(const shared_dict&) const { return kind::dict; }
    kind operator()(object*) const { return kind::object; }
    kind operator()(const shared_function&) const { return kind::function; }
  };
  return std::visit(visitor{}, held_);
}

const sequence& value::items() const {
  return std::get<shared_list>(held_)->items;
}

std::string value::why_undefined() const {
  const auto& why = std::get<missing>(held_).why;
  return why ? *why : "a value is undefined";
}

bool value::same_as(const value& other) const {
  if (held_.index() != other.held_.index()) return false;
  switch (what()) {
    case kind::undefined:
    case kind::none:
      return true;
    case kind::boolean:
      return boolean() == other.boolean();
    case kind::integer:
      return whole() == other.whole();
    case kind::real:
      return number() == other.number();
    case kind::text:
      return text() == other.text();
    case kind::list:
    case kind::tuple:
      return std::get<shared_list>(held_) == std::get<shared_list>(other.held_);
    case kind::dict:
      return std::get<shared_dict>(held_) == std::get<shared_dict>(other.held_);
    case kind::object:
      return &thing() == &other.thing();
    case kind::function:
      return std::get<shared_function>(held_) == std::get<shared_function>(other.held_);
  }
  return false;
}

uint32_t value::depth() const {
  if (is_sequence()) return std::get<shared_list>(held_)->depth;
  if (is(kind::dict)) return entries().depth();
  return 0;
}

std::optional<std::string> hash_key(const value& key) {
  switch (key.what()) {
    case value::kind::text:
      return "t" + key.text();
    case value::kind::none:
      return "n";
    case value::kind::boolean:
    case value::kind::integer:
      return "i" + std::to_string(key.whole());
    case value::kind::real: {
      constexpr double largest = 9e15;  // larger doubles are not exact integers
      const double d = key.number();
      if (d == std::floor(d) && std::abs(d) < largest)
        return "i" + std::to_string(static_cast<int64_t>(d));
      return "r" + float_text(d);
    }
    default:
      return std::nullopt;
  }
}

bool may_be_key(const value& v) {
  return v.is(value::kind::text) || v.is(value::kind::none) || v.is_number();
}

bool dict::set(const value& key, value content) {
  if (!may_be_key(key)) return false;
  depth_ = std::max(depth_, content.depth() + 1);
  const bool is_text = key.is(value::kind::text);
  const auto [at, is_new] = is_text ? texts_.try_emplace(key.text(), entries_.size())
                                    : others_.try_emplace(*hash_key(key), entries_.size());
  if (is_new)
    entries_.emplace_back(key, std::move(content));
  else
    entries_[at->second].second = std::move(content);
  return true;
}

const value* dict::find(const value& key) const {
  if (key.is(value::kind::text)) return find(std::string_view(key.text()));
  const auto hash = hash_key(key);
  if (!hash) return nullptr;
  const auto at = others_.find(*hash);
  return at == others_.end() ? nullptr : &entries_[at->second].second;
}

const value* dict::find(std::string_view key) const {
  const auto at = texts_.find(key);
  return at == texts_.end() ? nullptr : &entries_[at->second].second;
}

}  // namespace bitnet::jinja
