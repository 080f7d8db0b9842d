#pragma once
// Reads which CPUs share a core, a last-level cache and a memory node, from Linux's /sys.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "threads/pool.hpp"

namespace bitnet::threads {

// Equal numbers mean the same core, cache or node. Only the node's number is the system's.
struct cpu_facts {
  uint32_t cpu = 0;
  uint32_t core = 0;      // shared by its hardware threads
  uint32_t cache = 0;     // the last level
  uint32_t node = 0;      // number of the memory node
  uint32_t speed = 1024;  // relative; small cores of hybrid processors have less
};

// Parses "0-3,8" of files below /sys: ascending numbers below most_cpus, perhaps a line break.
// nullopt for other texts; "" is the empty list.
std::optional<cpu_list> read_cpu_list(std::string_view text);

// The first CPU on the physical core of `cpu`; `cpu` itself if sysfs does not report it.
uint32_t core_of(const std::filesystem::path& root, uint32_t cpu);

// One entry per CPU of `cpus`, from sys/devices/system below `root`. A file that is missing or
// contradictory (a core without its CPU) is ignored: then a CPU is a core by itself, shares the
// last cache with its node, lies on node 0 and has full speed.
std::vector<cpu_facts> read_topology(const std::filesystem::path& root, const cpu_list& cpus);

// Whether the folder lists more than one node with memory or CPUs.
bool has_several_nodes(const std::filesystem::path& root);

}  // namespace bitnet::threads
