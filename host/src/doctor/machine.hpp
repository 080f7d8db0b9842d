#pragma once
// Facts about this machine and the limits of a process. Unknown members are left out.

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
// cgroup_version, cgroup_tasks, cgroup_memory_bytes}: the tightest limit of each kind
[[nodiscard]] nlohmann::ordered_json limit_facts(const system_tree& system);
// {total_bytes, free_bytes, swap_total_bytes, swap_free_bytes}. free_bytes is what a process could
// allocate, bounded by its control groups.
[[nodiscard]] nlohmann::ordered_json memory_facts(const system_tree& system);

}  // namespace bitnet::host::doctor
