#include "select/option.hpp"

#include <algorithm>

namespace bitnet::select {

score facts_of(const option& o) {
  return score_of(o.from->devices()[o.index], o.from->priority(), o.from->manifest_class());
}

contender contender_of(const option& o) {
  return {&o.info(), facts_of(o), o.from->name(), o.index};
}

std::vector<option> in_order(const std::vector<option>& all) {
  std::vector<contender> contenders;
  contenders.reserve(all.size());
  for (const option& o : all) contenders.push_back(contender_of(o));
  std::vector<option> out;
  out.reserve(all.size());
  for (const std::size_t i : order(contenders)) out.push_back(all[i]);
  return out;
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
