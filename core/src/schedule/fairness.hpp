#pragma once
// How many tokens each client was served lately: a sum in which a token counts half as much after
// each half-life.
//
// Cost     O(1) on average. A client that was served less than a token lately is forgotten.
// Threads  one at a time.

#include <chrono>
#include <cstdint>
#include <unordered_map>

namespace bitnet::schedule {

class fairness {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  explicit fairness(std::chrono::nanoseconds half_life);  // > 0

  void serve(uint64_t client, uint64_t n_tokens, time_point now);
  // The client's sum at `now`, in tokens.
  [[nodiscard]] double lately(uint64_t client, time_point now) const;
  // Larger for a client that was served more lately, if both are asked at one time; -infinity for
  // one that was not served.
  [[nodiscard]] double order_of(uint64_t client) const;
  [[nodiscard]] uint32_t n_clients() const { return static_cast<uint32_t>(served_.size()); }

 private:
  [[nodiscard]] double half_lives(time_point at) const;
  void forget(time_point now);

  double half_life_ns_;
  // For each client: log2 of its sum, plus the half-lives from the start until that sum. This
  // number does not change while time passes.
  std::unordered_map<uint64_t, double> served_;
  std::size_t forget_at_;
};

}  // namespace bitnet::schedule
