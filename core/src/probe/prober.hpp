#pragma once
// The program's side of probes: starts one broker process per probe.
//
// Threads  Any thread may call it. An own thread starts the brokers and reads their messages.
// Life     A probe with a cache continues when this object or the program ends; others end with it.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "probe/job.hpp"
#include "probe/outcome.hpp"

namespace bitnet::probe {

using ticket = uint64_t;

class prober {
 public:
  // At most `most_children` probes without a cache run at a time. Probes with a cache are
  // limited by the locks of probe_lock.hpp.
  explicit prober(uint32_t most_children);
  // Ends the probes whose answers no process can read any more. Does not wait for a child that does
  // not end.
  ~prober();
  prober(const prober&) = delete;
  prober& operator=(const prober&) = delete;

  // If the system cannot start a thread for the probe, the answer is a fault.
  [[nodiscard]] ticket start(job what);
  // Returns the answer, once; nullopt while the probe runs.
  [[nodiscard]] std::optional<outcome> take(ticket t);
  // Progress of a running probe.
  [[nodiscard]] outcome peek(ticket t) const;
  // Lowers the probe to idle priority, since no caller waits for it any more.
  void calm(ticket t);
  // Waits for all answers, at most until `end`. Returns true if all have come.
  bool wait(const std::vector<ticket>& all, std::chrono::steady_clock::time_point end) const;
  // Waits for one answer, at most until `end`. Returns true if one has come.
  bool wait_for_one(const std::vector<ticket>& of, std::chrono::steady_clock::time_point end) const;

 private:
  struct contents;
  std::unique_ptr<contents> contents_;
};

}  // namespace bitnet::probe
