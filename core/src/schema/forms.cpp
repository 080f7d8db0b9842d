#include "schema/forms.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace bitnet::schema {
namespace {

// Work of a copied property: it bounds the memory of all copies.
constexpr uint64_t property_cost = 256;

std::optional<uint32_t> lower(std::optional<uint32_t> a, std::optional<uint32_t> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

std::optional<booleans> met(const booleans& a, const booleans& b, faults&) {
  const booleans out{a.yes && b.yes, a.no && b.no};
  if (!out.yes && !out.no) return {};
  return out;
}

std::optional<numbers> met(const numbers& a, const numbers& b, faults&) {
  numbers out = a.met(b);
  if (out.is_void()) return {};
  return out;
}

std::optional<strings> met(const strings& a, const strings& b, faults& to) {
  strings out = a;
  for (const shared_texts& one : b.each)
    if (std::ranges::find(out.each, one) == out.each.end()) out.each.push_back(one);
  out.least = std::max(a.least, b.least);
  out.most = lower(a.most, b.most);
  if (out.most && *out.most < out.least) return {};
  if (out.each.size() > 1) {  // combined once, because later calls use the result again
    auto all = std::make_shared<text_automaton>(*out.each[0]);
    for (std::size_t i = 1; i < out.each.size(); ++i) *all = common(*all, *out.each[i], to);
    if (all->empty()) return {};
    out.each.assign(1, std::move(all));
  }
  return out;
}

std::optional<arrays> met(const arrays& a, const arrays& b, faults& to) {
  arrays out;
  const std::size_t n = std::max(a.first.size(), b.first.size());
  if (!to.spend(property_cost * (n + 1))) return {};
  for (std::size_t i = 0; i < n; ++i) out.first.push_back(joined(a.item(i), b.item(i)));
  out.rest = joined(a.rest, b.rest);
  out.least = std::max(a.least, b.least);
  out.most = lower(a.most, b.most);
  if (out.most && *out.most < out.least) return {};
  return out;
}

// Adds the members that `from` lists, with the schemas of both.
bool add_listed(objects& to, const objects& from, const objects& other) {
  for (const property& p : from.listed) {
    if (std::ranges::find(to.listed, p.name, &property::name) != to.listed.end()) continue;
    const node* more = other.member(p.name);
    const auto same = std::ranges::find(other.listed, p.name, &property::name);
    const bool required = p.required || (same != other.listed.end() && same->required);
    if (more != nullptr)
      to.listed.push_back({p.name, joined(p.is, *more), required});
    else if (required)
      return false;
  }
  return true;
}

std::optional<objects> met(const objects& a, const objects& b, faults& to) {
  objects out;
  const std::size_t n = a.listed.size() + b.listed.size();
  if (!to.spend(property_cost * (n + 1) + uint64_t{a.listed.size()} * b.listed.size())) return {};
  if (!add_listed(out, a, b) || !add_listed(out, b, a)) return {};
  for (const name_class& x : a.others)
    for (const name_class& y : b.others) {
      auto names = x.names;
      if (x.names->is_any()) names = y.names;
      if (x.names != y.names && !x.names->is_any() && !y.names->is_any())
        names = std::make_shared<text_automaton>(common(*x.names, *y.names, to));
      if (!names->empty()) out.others.push_back({std::move(names), joined(x.is, y.is)});
    }
  out.names = a.names;
  out.names.insert(out.names.end(), b.names.begin(), b.names.end());
  out.least = std::max(a.least, b.least);
  out.most = lower(a.most, b.most);
  if (out.most && *out.most < std::max(out.least, out.n_required())) return {};
  return out;
}

std::optional<nulls> met(const nulls&, const nulls&, faults&) {
  return nulls{};
}

}  // namespace

node joined(const node& a, const node& b) {
  node out;
  std::ranges::set_union(a, b, std::back_inserter(out), {}, &value::number, &value::number);
  return out;
}

const node* objects::member(const std::string& name) const {
  const auto at = std::ranges::find(listed, name, &property::name);
  if (at != listed.end()) return &at->is;
  const std::u32string characters = characters_of(name);
  for (const name_class& one : others)
    if (one.names->accepts(characters)) return &one.is;
  return nullptr;
}

uint32_t objects::n_required() const {
  return static_cast<uint32_t>(std::ranges::count_if(listed, &property::required));
}

std::optional<choice> common(const choice& a, const choice& b, faults& to) {
  if (a.is.index() != b.is.index() || !to.spend(1)) return {};
  return std::visit(
      [&](const auto& one) -> std::optional<choice> {
        auto both = met(one, std::get<std::decay_t<decltype(one)>>(b.is), to);
        if (!both || to.any()) return {};
        return choice{*std::move(both), a.from};
      },
      a.is);
}

form common(const form& a, const form& b, faults& to) {
  form out;
  for (const choice& x : a)
    for (const choice& y : b) {
      if (!to.spend(1)) return {};
      if (auto both = common(x, y, to)) out.push_back(*std::move(both));
      if (out.size() > most_choices)
        to.unsupported(x.from == nullptr ? "#" : x.from->where(),
                       fmt::format("more than {} combinations of anyOf, oneOf, enum and allOf are "
                                   "possible here; write them as fewer cases",
                                   most_choices));
    }
  return out;
}

text_automaton texts_of(const strings& of, faults& to) {
  text_automaton out = of.each.empty() ? any_text() : *of.each[0];
  for (std::size_t i = 1; i < of.each.size(); ++i) out = common(out, *of.each[i], to);
  if (of.least == 0 && !of.most) return out;
  return common(out, texts_of_length(of.least, of.most, to), to);
}

}  // namespace bitnet::schema
