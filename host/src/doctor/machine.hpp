#pragma once
// What this machine is and what it lets a process have. Members that are unknown are left out.

#include <nlohmann/json_fwd.hpp>

#include "doctor/system_tree.hpp"

namespace bitnet::host::doctor {

// {architecture, system, kernel, container, processor, board, cpus_online, memory_nodes, forms: the
// best first}
[[nodiscard]] nlohmann::ordered_json processor_facts(const system_tree& system);
// {transparent: "madvise", large_page_bytes, reserved_pages, free_pages}
[[nodiscard]] nlohmann::ordered_json page_facts(const system_tree& system);
// {driver, governors: [...], preference}
[[nodiscard]] nlohmann::ordered_json governor_facts(const system_tree& system);
// {cpus_allowed, cpu_quota, threads, processes, open_files, locked_bytes, address_bytes,
// cgroup_version, cgroup_tasks, cgroup_memory_bytes}: the tightest of each
[[nodiscard]] nlohmann::ordered_json limit_facts(const system_tree& system);
// {total_bytes, free_bytes, swap_total_bytes, swap_free_bytes}: free is what a process could take,
// at most what its control groups leave it
[[nodiscard]] nlohmann::ordered_json memory_facts(const system_tree& system);

}  // namespace bitnet::host::doctor
