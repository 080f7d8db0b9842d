#pragma once
// The energy that processors used, by powercap's counters (RAPL). On most systems only root can
// read them.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "doctor/system_tree.hpp"

namespace bitnet::host::measure {

class energy_meter {
 public:
  // Measures whole processor packages and ignores unreadable counters. `system` outlives it.
  explicit energy_meter(const doctor::system_tree& system);

  [[nodiscard]] bool known() const { return !packages_.empty(); }
  [[nodiscard]] std::string source() const;  // the counters' names: "package-0 package-1"

  void start();
  // Joules since start(); a counter may wrap once. Nothing if a counter has become unreadable.
  [[nodiscard]] std::optional<double> joules() const;

 private:
  struct package {
    std::filesystem::path counter;
    std::string name;
    uint64_t range_uj = 0;  // the counter wraps after this value
    uint64_t begin_uj = 0;
  };
  const doctor::system_tree& system_;
  std::vector<package> packages_;
};

}  // namespace bitnet::host::measure
