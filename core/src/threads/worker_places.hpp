#pragma once
// Assigns CPUs to the workers of a pool.

#include <vector>

#include "threads/topology.hpp"

namespace bitnet::threads {

// The place of one worker.
struct worker_place {
  cpu_list cpus;
  uint32_t node = 0;
};

// Places for n workers on these CPUs. First each core gets one worker, fast cores before slow ones;
// then the second hardware threads; then CPUs get several. If not all CPUs of a kind are needed,
// nodes and then caches get equal numbers. Workers with adjacent numbers are close: on one core,
// one last-level cache, one node. So a plugin that divides rows by worker divides them by node,
// too.
// `strict`: each worker gets one CPU. Otherwise it gets its node's CPUs, and the system moves it
// there.
std::vector<worker_place> places_on(const std::vector<cpu_facts>& cpus, uint32_t n, bool strict);

// The same for this machine; empty if no thread is pinned: not strict, and only one node.
std::vector<worker_place> places_here(const cpu_list& cpus, uint32_t n, bool strict);

}  // namespace bitnet::threads
