// The forms that a schema has by itself, by type.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "schema/form_reader.hpp"
#include "schema/formats.hpp"

namespace bitnet::schema {
namespace {

constexpr std::size_t most_name_classes = 64;

bool names_type(const value& schema, std::string_view type) {
  const value* types = schema.find("type");
  if (types == nullptr) return true;
  if (types->what == value::kind::string) return types->text == type;
  return std::ranges::any_of(types->items, [&](const value* t) { return t->text == type; });
}

std::optional<uint32_t> count(const value& schema, std::string_view name) {
  const value* of = schema.find(name);
  if (of == nullptr) return {};
  return count_of(*of);
}

}  // namespace

form form_reader::own(const value& schema) {
  form out;
  const auto add = [&](auto one) { out.push_back({std::move(one), &schema}); };
  if (names_type(schema, "null")) add(nulls{});
  if (names_type(schema, "boolean")) add(booleans{});
  if (names_type(schema, "number"))
    add(read_numbers(schema, false));
  else if (names_type(schema, "integer"))
    add(read_numbers(schema, true));
  if (names_type(schema, "string")) add(read_strings(schema));
  if (names_type(schema, "array")) add(read_arrays(schema));
  if (names_type(schema, "object"))
    if (auto one = read_objects(schema)) add(*std::move(one));
  return to_.any() ? form{} : out;
}

numbers form_reader::read_numbers(const value& schema, bool integer) {
  numbers out{.integer = integer, .low = {}, .high = {}, .steps = {}};
  const auto bound = [&](std::string_view name, bool exclusive) -> std::optional<number_bound> {
    const value* of = schema.find(name);
    if (of == nullptr) return {};
    return number_bound{decimal::parse(of->text).value_or(decimal{}), exclusive};
  };
  for (const bool exclusive : {false, true}) {
    numbers more;
    more.low = bound(exclusive ? "exclusiveMinimum" : "minimum", exclusive);
    more.high = bound(exclusive ? "exclusiveMaximum" : "maximum", exclusive);
    out = out.met(more);
  }
  if (const value* step = schema.find("multipleOf"))
    out.steps.push_back(decimal::parse(step->text).value_or(decimal{}));
  return out;
}

shared_texts form_reader::pattern(const std::string& text, matching how, const value& from) {
  shared_texts& known = patterns_[{text, how == matching::whole}];
  if (!known)
    known = std::make_shared<text_automaton>(texts_of_pattern(text, how, from.where(), to_));
  return known;
}

strings form_reader::read_strings(const value& schema) {
  strings out{.each = {}, .least = count(schema, "minLength").value_or(0), .most = {}};
  out.most = count(schema, "maxLength");
  if (const value* of = schema.find("pattern"))
    out.each.push_back(pattern(of->text, matching::found, *of));
  if (const value* of = schema.find("format"))
    out.each.push_back(pattern(std::string(pattern_of_format(of->text)), matching::whole, *of));
  return out;
}

arrays form_reader::read_arrays(const value& schema) {
  arrays out;
  if (const value* first = schema.find("prefixItems"))
    for (const value* one : first->items) out.first.push_back(node_of(one));
  if (const value* rest = schema.find("items")) out.rest = node_of(rest);
  out.least = count(schema, "minItems").value_or(0);
  out.most = count(schema, "maxItems");
  return out;
}

// The classes of names by the patterns that they match, each with its members' schemas.
std::vector<name_class> form_reader::read_others(const value& schema) {
  struct part {
    shared_texts names;
    node is;
    bool matched = false;
  };
  std::vector<part> parts{{std::make_shared<text_automaton>(any_text()), {}}};
  if (const value* patterns = schema.find("patternProperties"))
    for (const schema::member& m : patterns->members) {
      const shared_texts with = pattern(m.name, matching::found, *m.is);
      const text_automaton without = all_but(*with);
      std::vector<part> next;
      for (const part& p : parts) {
        auto yes = std::make_shared<text_automaton>(common(*p.names, *with, to_));
        auto no = std::make_shared<text_automaton>(common(*p.names, without, to_));
        if (!yes->empty()) next.push_back({std::move(yes), joined(p.is, node_of(m.is)), true});
        if (!no->empty()) next.push_back({std::move(no), p.is, p.matched});
      }
      parts = std::move(next);
      if (parts.size() > most_name_classes)
        to_.unsupported(patterns->where(), "the patterns of names overlap in too many ways");
      if (to_.any()) return {};
    }
  std::vector<name_class> out;
  const value* rest = schema.find("additionalProperties");
  for (part& p : parts) {
    if (!p.matched && rest != nullptr) {
      if (rest->what == value::kind::boolean && !rest->truth) continue;
      p.is = node_of(rest);
    }
    out.push_back({std::move(p.names), std::move(p.is)});
  }
  return out;
}

// nullopt if a required member is forbidden.
std::optional<objects> form_reader::read_objects(const value& schema) {
  objects out;
  const std::vector<name_class> others = read_others(schema);
  const value* patterns = schema.find("patternProperties");
  if (const value* listed = schema.find("properties"))
    for (const schema::member& m : listed->members) {
      node is = node_of(m.is);
      if (patterns != nullptr)
        for (const schema::member& p : patterns->members)
          if (pattern(p.name, matching::found, *p.is)->accepts(characters_of(m.name)))
            is = joined(is, node_of(p.is));
      if (!to_.spend(1 + m.name.size())) return {};
      out.listed.push_back({m.name, std::move(is), false});
    }
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < out.listed.size(); ++i) places.emplace(out.listed[i].name, i);
  const objects unlisted{.listed = {}, .others = others, .names = {}, .least = 0, .most = {}};
  out.others = others;
  if (const value* required = schema.find("required"))
    for (const value* name : required->items) {
      if (!to_.spend(1 + name->text.size())) return {};
      const auto [at, is_new] = places.try_emplace(name->text, out.listed.size());
      if (is_new) {
        const node* is = unlisted.member(name->text);
        if (is == nullptr) return {};
        out.listed.push_back({name->text, *is, true});
      }
      out.listed[at->second].required = true;
    }
  if (const value* names = schema.find("propertyNames")) {
    text_automaton none;  // names that are forbidden
    none = any_text();
    for (const choice& one : form_of(node_of(names)))
      if (const auto* s = std::get_if<strings>(&one.is))
        none = common(none, all_but(schema::texts_of(*s, to_)), to_);
    out.names.push_back(std::make_shared<text_automaton>(all_but(none)));
  }
  out.least = count(schema, "minProperties").value_or(0);
  out.most = count(schema, "maxProperties");
  if (out.most && *out.most < std::max(out.least, out.n_required())) return {};
  return out;
}

}  // namespace bitnet::schema
