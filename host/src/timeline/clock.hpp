#pragma once
// Times as the Trace Event Format has them.

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace bitnet::host::timeline {

// Of CLOCK_MONOTONIC, as bitnet_trace_event has it.
[[nodiscard]] inline uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

// A number of JSON: microseconds, to the nanosecond.
[[nodiscard]] inline std::string microseconds(uint64_t ns) {
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

}  // namespace bitnet::host::timeline
