#pragma once
// Which CPUs each worker of a pool is kept to.

#include <vector>

#include "threads/topology.hpp"

namespace bitnet::threads {

// Of one worker.
struct worker_place {
  cpu_list cpus;
  uint32_t node = 0;
};

// Places for n workers on these CPUs. First every core has one, fast cores before slow ones, then
// the second hardware threads get theirs, then CPUs get several. Where not all of a kind are
// needed, nodes and then caches get equally many. Neighbours by number lie side by side: on one
// core, behind one last cache, on one node; a plugin that cuts rows by workers then cuts them by
// nodes, too.
// `strict`: each worker has one CPU. Otherwise those of its node, within which the system moves it.
std::vector<worker_place> places_on(const std::vector<cpu_facts>& cpus, uint32_t n, bool strict);

// The same for this machine; empty where no thread is kept to CPUs: not strict, and one node.
std::vector<worker_place> places_here(const cpu_list& cpus, uint32_t n, bool strict);

}  // namespace bitnet::threads
