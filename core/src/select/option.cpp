#include "select/option.hpp"

#include <algorithm>
#include <tuple>

namespace bitnet::select {

score facts_of(const option& o) {
  return score_of(o.from->devices()[o.index], o.from->priority(), o.from->manifest_class());
}

bool ranks_higher(const option& a, const option& b) {
  const auto mine = order_of(facts_of(a)), theirs = order_of(facts_of(b));
  if (mine != theirs) return mine > theirs;
  return std::tuple(a.from->name(), a.index) < std::tuple(b.from->name(), b.index);
}

std::string shown_better(const std::vector<option>& ranked, const option& o) {
  for (const option& better : ranked) {
    if (better.from == o.from && better.index == o.index) break;
    if (better.from != o.from && is_same_hardware(better.info(), o.info())) return better.name();
  }
  return "";
}

bool matches(const wish& w, const candidate& c) {
  switch (w.kind) {
    case wish::kind_type::any:
      return true;
    case wish::kind_type::device_class:
      return c.manifest_class() == w.device_class;
    case wish::kind_type::name:
      return c.is_called(w.name);
  }
  return false;
}

bool matches_any(const std::vector<wish>& wishes, const candidate& c) {
  return std::ranges::any_of(wishes, [&](const wish& w) { return matches(w, c); });
}

bool matches(const wish& w, const option& o) {
  if (!matches(w, *o.from)) return false;
  if (w.kind == wish::kind_type::device_class) return o.info().device_class == w.device_class;
  return true;
}

}  // namespace bitnet::select
