#pragma once
// The program's side of probes: one broker for each, which does the work in processes of its own.
//
// Threads  all calls from any thread. One thread of its own starts the brokers and listens to them.
// Life     what can leave its answer in a memory goes on when this object or the program ends;
//          anything else ends with it.

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
  // Of those without a memory, at most so many run at a time; the others take turns by themselves.
  explicit prober(uint32_t most_children);
  // Ends probes whose answer cannot be read any more; never waits for a child that does not die.
  ~prober();
  prober(const prober&) = delete;
  prober& operator=(const prober&) = delete;

  // Its answer is a fault where the system has no thread to do it.
  [[nodiscard]] ticket start(job what);
  // The answer, once; nothing while the probe runs.
  [[nodiscard]] std::optional<outcome> take(ticket t);
  // How far a probe that still runs is.
  [[nodiscard]] outcome peek(ticket t) const;
  // No caller waits for it any more: it goes on idle-class.
  void calm(ticket t);
  // Until all of them have answered, at most until `end`. True if all have.
  bool wait(const std::vector<ticket>& all, std::chrono::steady_clock::time_point end) const;
  // Until one of them has answered, at most until `end`. True if one has.
  bool wait_for_one(const std::vector<ticket>& of, std::chrono::steady_clock::time_point end) const;

 private:
  struct contents;
  std::unique_ptr<contents> contents_;
};

}  // namespace bitnet::probe
