#pragma once
// What came out of a run: the verdict, the level, as text and as JSON.

#include <nlohmann/json.hpp>
#include <string>

#include "harness/options.hpp"
#include "harness/supervise.hpp"

namespace bitnet::conformance {

// Grows by one in the second place whenever a test is added, in the first when one means more than
// before: what passed an older suite may fail a newer one.
inline constexpr const char* suite_version = "3.1";

inline constexpr int exit_passed = 0, exit_failed = 1, exit_usage = 2, exit_rejected = 22,
                     exit_nothing = 77;

struct report {
  options asked;
  findings found;

  // "gold", "silver", "bronze" or "none": the highest whose suites all ran and held.
  std::string level() const;
  // Why the next level was not reached; "" at gold.
  std::string missing() const;
  int exit_code() const;

  nlohmann::ordered_json as_json() const;
  std::string as_text() const;
};

}  // namespace bitnet::conformance
