#pragma once
// Times for the Trace Event Format.

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace bitnet::host::timeline {

// CLOCK_MONOTONIC, as in bitnet_trace_event.
[[nodiscard]] inline uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

// A JSON number of microseconds with three decimals.
[[nodiscard]] inline std::string microseconds(uint64_t ns) {
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

}  // namespace bitnet::host::timeline
