#pragma once
// Where CPUs lie: which share a core, a last cache, a memory, as Linux reports it below /sys.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "threads/pool.hpp"

namespace bitnet::threads {

// Equal numbers are the same core, cache or node; they mean nothing else, but for that of the node.
struct cpu_facts {
  uint32_t cpu = 0;
  uint32_t core = 0;      // its hardware threads share it
  uint32_t cache = 0;     // of the last level
  uint32_t node = 0;      // whose memory is near, the system's number
  uint32_t speed = 1024;  // beside that of others; small cores of hybrid processors have less
};

// "0-3,8" as the files below /sys have it: numbers go up and are below most_cpus, a line break may
// follow. Nothing for anything else; "" is the empty list.
std::optional<cpu_list> read_cpu_list(std::string_view text);

// The first CPU of the physical core that `cpu` is a thread of; itself where sysfs does not say.
uint32_t core_of(const std::filesystem::path& root, uint32_t cpu);

// Of each of `cpus`, in their order, what the folder sys/devices/system below `root` says. A file
// that is missing or impossible (a core that its CPU is not part of) is ignored: then a CPU is a
// core by itself, shares the last cache with its node, lies on node 0 and is fast.
std::vector<cpu_facts> read_topology(const std::filesystem::path& root, const cpu_list& cpus);

// Whether that folder names more than one node with memory or CPUs.
bool has_several_nodes(const std::filesystem::path& root);

}  // namespace bitnet::threads
