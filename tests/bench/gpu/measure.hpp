#pragma once
// Every ceiling of a driver. A kernel is tried in several forms first, and the fastest of them is
// the ceiling. What it computed is compared with what the host computes: a loop that was left out
// would be fast.

#include "driver.hpp"

namespace bitnet::ceilings {

struct measured {
  std::string name, unit, how;
  std::vector<double> samples;  // a round each
};

struct measurement {
  uint64_t bytes = 0;  // that `read` reads
  std::vector<measured> all;
};

// Throws runtime_error if a kernel is wrong.
measurement measure(driver& on, uint32_t rounds, uint32_t megabytes);

}  // namespace bitnet::ceilings
