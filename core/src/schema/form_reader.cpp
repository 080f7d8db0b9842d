#include "schema/form_reader.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace bitnet::schema {
namespace {

constexpr std::size_t deepest_path =
    200;  // schemas that stand for each other without a value between
constexpr uint32_t deepest_comparison = 6;

form anything() {
  form out;
  out.push_back({nulls{}, nullptr});
  out.push_back({booleans{}, nullptr});
  out.push_back({numbers{}, nullptr});
  out.push_back({strings{}, nullptr});
  out.push_back({arrays{}, nullptr});
  objects any;
  any.others.push_back({std::make_shared<text_automaton>(any_text()), {}});
  out.push_back({std::move(any), nullptr});
  return out;
}

}  // namespace

form form_reader::form_of(const node& of) {
  if (of.empty()) return anything();
  if (of.size() == 1) return read(of[0]);
  std::vector<uint32_t> key;
  for (const value* s : of) key.push_back(s->number);
  if (const auto known = known_nodes_.find(key); known != known_nodes_.end()) return known->second;
  const bool unknown_before = std::exchange(met_unknown_, false);
  form out = read(of[0]);
  for (std::size_t i = 1; i < of.size() && !to_.any(); ++i) out = common(out, read(of[i]), to_);
  if (!met_unknown_ && known_nodes_.size() < most_nodes) known_nodes_.emplace(std::move(key), out);
  met_unknown_ |= unknown_before;
  return out;
}

form form_reader::read(const value* schema) {  // NOLINT(misc-no-recursion): bounded by the path
  if (to_.any() || !to_.spend(1)) return {};
  if (schema->what == value::kind::boolean) return schema->truth ? anything() : form{};
  if (const auto known = known_.find(schema); known != known_.end()) return known->second;
  if (const auto at = std::ranges::find(path_, schema); at != path_.end()) {
    if (static_cast<std::size_t>(at - path_.begin()) < known_from_) {
      met_unknown_ = true;
      return anything();
    }
    to_.wrong(schema->where(),
              "the schema stands for itself, by $ref, allOf, anyOf or oneOf, "
              "without a member or an item between; take one of these out");
    return {};
  }
  if (path_.size() == deepest_path) {
    to_.unsupported(schema->where(), fmt::format("more than {} schemas stand for each other here, "
                                                 "by $ref, allOf, anyOf or oneOf",
                                                 deepest_path));
    return {};
  }
  path_.push_back(schema);
  to_.work_at(schema->where());
  const bool unknown_before = std::exchange(met_unknown_, false);
  form out = combined(*schema);
  path_.pop_back();
  if (!met_unknown_) known_.emplace(schema, out);
  met_unknown_ |= unknown_before;
  return out;
}

form form_reader::combined(const value& schema) {  // NOLINT(misc-no-recursion): see read
  form out = own(schema);
  if (const value* values = schema.find("enum"))
    out = common(out, of_values(values->items, schema), to_);
  if (const value* one = schema.find("const")) out = common(out, of_values({one}, schema), to_);
  if (const value* reference = schema.find("$ref"))
    if (const value* target = referred(*reference)) out = common(out, read(target), to_);
  if (const value* all = schema.find("allOf"))
    for (const value* one : all->items) out = common(out, read(one), to_);
  if (const value* cases = schema.find("anyOf")) {
    form any;
    for (const value* one : cases->items) {
      form more = common(out, read(one), to_);
      any.insert(any.end(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
      if (any.size() > most_choices)
        to_.unsupported(cases->where(),
                        fmt::format("more than {} combinations are possible here", most_choices));
      if (to_.any()) return {};
    }
    out = std::move(any);
  }
  if (const value* cases = schema.find("oneOf")) out = one_of_cases(out, *cases);
  return out;
}

// The cases must be plainly different: a value that is valid by two of them is not valid.
form form_reader::one_of_cases(const form& base, const value& cases) {  // NOLINT(misc-no-recursion)
  std::vector<form> each;
  for (const value* one : cases.items) each.push_back(common(base, read(one), to_));
  form out;
  const std::size_t before = std::exchange(known_from_, path_.size());
  const bool unknown_before = met_unknown_;
  for (std::size_t i = 0; i < each.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j)
      for (const choice& one : common(each[i], each[j], to_)) {
        if (to_.any()) break;
        if (!is_void(one, 0))
          to_.unsupported(cases.where(),
                          fmt::format("the cases {} and {} of oneOf can both be valid, or are not "
                                      "plainly different; give each a member by a const of its "
                                      "own that is required, or use anyOf",
                                      j, i));
      }
    out.insert(out.end(), each[i].begin(), each[i].end());
  }
  known_from_ = before;
  met_unknown_ = unknown_before;
  return to_.any() ? form{} : out;
}

const value* form_reader::referred(const value& reference) {
  std::string_view path = reference.text;
  if (const value* id = root_->find("$id"); id != nullptr && !path.starts_with('#')) {
    std::string_view base = id->text;
    if (base.ends_with('#')) base.remove_suffix(1);
    if (path.starts_with(base)) path.remove_prefix(base.size());
    if (path.empty()) path = "#";
  }
  const auto nowhere = [&](const std::string& why) {
    to_.wrong(reference.where(), why);
    return nullptr;
  };
  if (!path.starts_with('#') || (path.size() > 1 && path[1] != '/')) {
    to_.unsupported(reference.where(),
                    "only references into this schema are supported, by a path: "
                    "#/$defs/NAME");
    return nullptr;
  }
  path.remove_prefix(1);
  const value* at = root_;
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::size_t end = std::min(path.find('/'), path.size());
    std::string step;
    for (std::size_t i = 0; i < end; ++i) {
      unsigned code = 0;
      if (path[i] == '%' && i + 2 < end + 0U &&
          std::from_chars(path.data() + i + 1, path.data() + i + 3, code, 16).ptr ==
              path.data() + i + 3) {
        step += static_cast<char>(code);
        i += 2;
      } else if (path[i] == '~' && i + 1 < end && (path[i + 1] == '0' || path[i + 1] == '1')) {
        step += path[++i] == '0' ? '~' : '/';
      } else {
        step += path[i];
      }
    }
    path.remove_prefix(end);
    const value* next = at->find(step);
    if (std::size_t index = 0; at->what == value::kind::array &&
                               std::from_chars(step.data(), step.data() + step.size(), index).ptr ==
                                   step.data() + step.size())
      next = index < at->items.size() ? at->items[index] : nullptr;
    if (next == nullptr)
      return nowhere("the reference leads nowhere; define what it names in $defs");
    at = next;
  }
  checked_.check(at);
  return to_.any() ? nullptr : at;
}

// The values of an enum or a const: all strings are one choice.
form form_reader::of_values(const std::vector<const value*>& values, const value& schema) {
  form out;
  std::vector<std::u32string> texts;
  booleans truths{false, false};
  for (const value* v : values) {
    if (!to_.spend(1)) return {};
    switch (v->what) {
      case value::kind::null:
        out.push_back({nulls{}, &schema});
        break;
      case value::kind::boolean:
        (v->truth ? truths.yes : truths.no) = true;
        break;
      case value::kind::string:
        texts.push_back(characters_of(v->text));
        break;
      case value::kind::number: {
        const auto n = decimal::parse(v->text);
        if (!n) {
          to_.unsupported(v->where(), "the number has more than 100 digits");
          return {};
        }
        const number_bound at{*n, false};
        out.push_back({numbers{.integer = false, .low = at, .high = at, .steps = {}}, &schema});
        break;
      }
      case value::kind::array: {
        arrays list;
        for (const value* item : v->items) list.first.push_back({constant(item)});
        list.least = static_cast<uint32_t>(v->items.size());
        list.most = list.least;
        out.push_back({std::move(list), &schema});
        break;
      }
      case value::kind::object:
        out.push_back(object_of(*v));
        break;
    }
  }
  if (truths.yes || truths.no) out.push_back({truths, &schema});
  if (!texts.empty())
    out.push_back({strings{.each = {std::make_shared<text_automaton>(one_of(texts, to_))},
                           .least = 0,
                           .most = {}},
                   &schema});
  return out;
}

choice form_reader::object_of(const value& object) {
  objects out;
  for (const schema::member& m : object.members)
    out.listed.push_back({m.name, {constant(m.is)}, true});
  return {std::move(out), &object};
}

// {"const": of}
const value* form_reader::constant(const value* of) {
  const auto [at, is_new] = constants_.try_emplace(of, nullptr);
  if (!is_new) return at->second;
  value& made = store_.add(of->parent, of->step);
  made.what = value::kind::object;
  made.members.push_back({"const", of});
  return at->second = &made;
}

node form_reader::node_of(const value* schema) {
  const bool says_nothing = (schema->what == value::kind::boolean && schema->truth) ||
                            (schema->what == value::kind::object && schema->members.empty());
  return says_nothing ? node{} : node{schema};
}

// Whether the choice plainly allows no value.
bool form_reader::is_void(const choice& one, uint32_t depth) {  // NOLINT(misc-no-recursion)
  if (to_.any() || !to_.spend(1)) return true;
  const std::string where = one.from == nullptr ? "#" : one.from->where();
  to_.work_at(where);
  if (const auto* n = std::get_if<numbers>(&one.is))
    return schema::texts_of(*n, where, to_).empty();
  if (const auto* s = std::get_if<strings>(&one.is)) return schema::texts_of(*s, to_).empty();
  if (depth == deepest_comparison) return false;
  if (const auto* a = std::get_if<arrays>(&one.is)) {
    for (std::size_t i = 0; i < std::min<std::size_t>(a->least, a->first.size() + 1); ++i)
      if (is_void(a->item(i), depth + 1)) return true;
    return false;
  }
  const auto* o = std::get_if<objects>(&one.is);
  if (o == nullptr) return false;
  if (o->others.empty() && o->listed.size() < o->least) return true;
  return std::ranges::any_of(
      o->listed, [&](const property& p) { return p.required && is_void(p.is, depth + 1); });
}

bool form_reader::is_void(const node& of, uint32_t depth) {  // NOLINT(misc-no-recursion)
  const bool unknown_before = std::exchange(met_unknown_, false);
  const std::size_t before = std::exchange(known_from_, path_.size());
  const form all = form_of(of);
  const bool known = !met_unknown_;
  const bool out =
      known && std::ranges::all_of(all, [&](const choice& one) { return is_void(one, depth + 1); });
  known_from_ = before;
  met_unknown_ = unknown_before || !known;
  return out;
}

}  // namespace bitnet::schema
