#pragma once
// Runs probes: one child of bitnet-backend-probe per plugin, several at a time, under deadlines.
//
// Threads  all calls from any thread. One thread of its own starts the children, listens to them
//          and ends them; a child dies with that thread, so it lives as long as this object.

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "probe/finding.hpp"
#include "probe/task.hpp"

namespace bitnet::probe {

struct deadline {
  uint32_t soft_ms, hard_ms;  // told as slow; ended
};
using deadlines = std::array<deadline, n_stages>;

// The usual ones, the hard ones cut to `most_ms`, which is the manifest's.
[[nodiscard]] deadlines deadlines_for(uint32_t most_ms);

struct job {
  task work;
  deadlines limits{};
  std::vector<std::string> environment;  // "NAME=value"
};

using ticket = uint64_t;

class prober {
 public:
  // `helper` is the absolute path of bitnet-backend-probe. Each child has a folder of its own in
  // `scratch`, where that may be trusted, which is gone before its answer comes.
  prober(std::filesystem::path helper, const std::filesystem::path& scratch,
         uint32_t most_children);
  // Ends what still runs; never waits for a child that does not die.
  ~prober();
  prober(const prober&) = delete;
  prober& operator=(const prober&) = delete;

  [[nodiscard]] ticket start(job what);
  // The answer, once; nothing while the probe runs.
  [[nodiscard]] std::optional<finding> take(ticket t);
  // How far a probe that still runs is.
  [[nodiscard]] finding peek(ticket t) const;
  // Until all of them have answered, at most until `end`. True if all have.
  bool wait(const std::vector<ticket>& all, std::chrono::steady_clock::time_point end) const;
  // Until one of them has answered.
  void wait_for_one(const std::vector<ticket>& of) const;

 private:
  struct contents;
  std::unique_ptr<contents> contents_;
};

}  // namespace bitnet::probe
