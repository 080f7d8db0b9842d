#pragma once
// Load of the machine during a measurement: other processes, and time that the hypervisor took.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "doctor/system_tree.hpp"

namespace bitnet::host::measure {

// Sums over all processors since boot, in ticks.
struct processor_ticks {
  uint64_t all = 0, idle = 0, stolen = 0;
};

struct load_reading {
  std::optional<double> load;  // the load average of the last minute
  std::optional<processor_ticks> ticks;
  uint64_t own_ticks = 0;  // of this process
};
[[nodiscard]] load_reading load_now(const doctor::system_tree& system);

struct machine_load {
  std::optional<double> load_begin, load_end;
  std::optional<double> stolen_pct, others_pct;  // of all processors' time

  [[nodiscard]] nlohmann::ordered_json json() const;  // unknown members are left out
  [[nodiscard]] std::string line() const;             // "" where nothing is known
};
[[nodiscard]] machine_load load_between(const load_reading& begin, const load_reading& end);

// {cpu_info, n_cpus, isa, governor, kernel_release}, as the system reports them
[[nodiscard]] nlohmann::ordered_json machine_facts(const doctor::system_tree& system);
[[nodiscard]] std::string machine_line(const nlohmann::ordered_json& facts);

}  // namespace bitnet::host::measure
