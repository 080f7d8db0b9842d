#pragma once
// Counts the tokens that each client was served lately: a sum in which the weight of a token halves
// with each half-life.
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
  // Compares clients at the same moment: larger for a client that was served more; -infinity for a
  // client that was not served.
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
