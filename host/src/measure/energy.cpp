#include "measure/energy.hpp"

#include <algorithm>

namespace bitnet::host::measure {
namespace {

const std::filesystem::path powercap = "sys/class/powercap";

// Accepts "intel-rapl:0", also on AMD. "intel-rapl:0:1" is a part of it, and "intel-rapl-mmio:0"
// the same package by another interface: either would count twice.
bool is_package(std::string_view name) {
  constexpr std::string_view prefix = "intel-rapl:";
  return name.starts_with(prefix) && doctor::number_of(name.substr(prefix.size())).has_value();
}

}  // namespace

energy_meter::energy_meter(const doctor::system_tree& system) : system_(system) {
  for (const std::string& folder : system.names(powercap)) {
    if (!is_package(folder)) continue;
    const std::string name = system.line(powercap / folder / "name");
    if (!name.starts_with("package-")) continue;
    const auto range = system.number(powercap / folder / "max_energy_range_uj");
    const auto counter = powercap / folder / "energy_uj";
    const auto now = system.number(counter);
    if (!range || !now || *now > *range) {
      packages_.clear();  // a partial sum would look like the whole machine
      return;
    }
    packages_.push_back({counter, name, *range, *now});
  }
}

std::string energy_meter::source() const {
  std::string out;
  for (const package& one : packages_) out += (out.empty() ? "" : " ") + one.name;
  return out;
}

void energy_meter::start() {
  for (package& one : packages_) one.begin_uj = system_.number(one.counter).value_or(UINT64_MAX);
}

std::optional<double> energy_meter::joules() const {
  if (packages_.empty()) return std::nullopt;
  double sum = 0;
  for (const package& one : packages_) {
    const auto now = system_.number(one.counter);
    if (!now || *now > one.range_uj || one.begin_uj > one.range_uj) return std::nullopt;
    const uint64_t used =
        *now >= one.begin_uj ? *now - one.begin_uj : one.range_uj - one.begin_uj + *now;
    sum += static_cast<double>(used) / 1e6;
  }
  return sum;
}

}  // namespace bitnet::host::measure
