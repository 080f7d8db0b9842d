#include "select/coexistence.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>

namespace bitnet::select {
namespace {

struct loaded_backend {
  std::vector<std::string> conflicts;  // from all its manifests
  uint32_t n_loads = 0;
};

struct loaded_table {
  std::mutex guard;
  std::map<std::string, loaded_backend> all;
};

loaded_table& table() {
  static loaded_table one;
  return one;
}

bool names(const std::vector<std::string>& list, const std::string& name) {
  return std::ranges::find(list, name) != list.end();
}

}  // namespace

std::optional<std::string> join_loaded(const std::string& name,
                                       const std::vector<std::string>& conflicts) {
  loaded_table& of = table();
  const std::lock_guard lock(of.guard);
  for (const auto& [other, facts] : of.all)
    if (other != name && (names(conflicts, other) || names(facts.conflicts, name))) return other;
  loaded_backend& mine = of.all[name];
  ++mine.n_loads;
  for (const std::string& one : conflicts)
    if (!names(mine.conflicts, one)) mine.conflicts.push_back(one);
  return std::nullopt;
}

void leave_loaded(const std::string& name) {
  loaded_table& of = table();
  const std::lock_guard lock(of.guard);
  const auto found = of.all.find(name);
  if (found != of.all.end() && --found->second.n_loads == 0) of.all.erase(found);
}

}  // namespace bitnet::select
