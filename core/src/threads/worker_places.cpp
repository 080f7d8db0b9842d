#include "threads/worker_places.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace bitnet::threads {
namespace {

struct candidate {
  cpu_facts cpu;
  uint32_t thread_of_core = 0;  // index of the hardware thread on its core
};

// In the order in which they get workers.
std::vector<candidate> in_order_of_use(std::vector<cpu_facts> cpus) {
  std::ranges::sort(cpus, {}, &cpu_facts::cpu);
  std::map<uint32_t, uint32_t> of_core;
  std::vector<candidate> out;
  out.reserve(cpus.size());
  for (const cpu_facts& one : cpus) out.push_back({one, of_core[one.core]++});
  std::ranges::sort(out, [](const candidate& a, const candidate& b) {
    if (a.thread_of_core != b.thread_of_core) return a.thread_of_core < b.thread_of_core;
    return a.cpu.speed != b.cpu.speed ? a.cpu.speed > b.cpu.speed : a.cpu.cpu < b.cpu.cpu;
  });
  return out;
}

// Takes n of equally good candidates, alternating between nodes and then caches.
void take_some(std::vector<cpu_facts> from, uint32_t n, std::vector<cpu_facts>& out) {
  std::map<uint32_t, uint32_t> of_node;
  std::map<uint32_t, uint32_t> of_cache;
  for (const cpu_facts& one : out) {
    ++of_node[one.node];
    ++of_cache[one.cache];
  }
  for (; n != 0; --n) {
    const auto best = std::ranges::min_element(from, {}, [&](const cpu_facts& one) {
      return std::tuple(of_node[one.node], of_cache[one.cache], one.cpu);
    });
    ++of_node[best->node];
    ++of_cache[best->cache];
    out.push_back(*best);
    from.erase(best);
  }
}

// One CPU for each of n workers; adjacent workers are close.
std::vector<cpu_facts> seats(const std::vector<cpu_facts>& cpus, uint32_t n) {
  const std::vector<candidate> all = in_order_of_use(cpus);
  std::vector<cpu_facts> out;
  for (std::size_t first = 0; out.size() < n; first = first == all.size() ? 0 : first) {
    std::vector<cpu_facts> alike;
    std::size_t last = first;
    for (; last < all.size() && all[last].thread_of_core == all[first].thread_of_core &&
           all[last].cpu.speed == all[first].cpu.speed;
         ++last)
      alike.push_back(all[last].cpu);
    const std::size_t missing = n - out.size();
    if (alike.size() <= missing)
      out.insert(out.end(), alike.begin(), alike.end());
    else
      take_some(std::move(alike), static_cast<uint32_t>(missing), out);
    first = last;
  }
  std::ranges::sort(out, {}, [](const cpu_facts& one) {
    return std::tuple(one.node, one.cache, one.core, one.cpu);
  });
  return out;
}

}  // namespace

std::vector<worker_place> places_on(const std::vector<cpu_facts>& cpus, uint32_t n, bool strict) {
  std::vector<worker_place> out;
  if (cpus.empty()) return out;
  std::map<uint32_t, cpu_list> of_node;
  for (const cpu_facts& one : cpus) of_node[one.node].push_back(one.cpu);
  for (auto& [node, list] : of_node) std::ranges::sort(list);
  for (const cpu_facts& seat : seats(cpus, n))
    out.push_back({strict ? cpu_list{seat.cpu} : of_node[seat.node], seat.node});
  return out;
}

std::vector<worker_place> places_here(const cpu_list& cpus, uint32_t n, bool strict) {
  if (!strict && !has_several_nodes("/")) return {};
  const std::vector<cpu_facts> known = read_topology("/", cpus);
  const bool one_node = std::ranges::all_of(
      known, [&](const cpu_facts& one) { return one.node == known.front().node; });
  if (!strict && one_node) return {};
  return places_on(known, n, strict);
}

}  // namespace bitnet::threads
