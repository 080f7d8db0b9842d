#include "schedule/fairness.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace bitnet::schedule {
namespace {

// Clients. With fewer entries none is forgotten: forget() visits all of them, and so few take
// little memory.
constexpr std::size_t least_forget = 64;

}  // namespace

fairness::fairness(std::chrono::nanoseconds half_life)
    : half_life_ns_(static_cast<double>(half_life.count())), forget_at_(least_forget) {}

double fairness::half_lives(time_point at) const {
  return static_cast<double>(at.time_since_epoch().count()) / half_life_ns_;
}

void fairness::serve(uint64_t client, uint64_t n_tokens, time_point now) {
  if (n_tokens == 0) return;
  const double sum = lately(client, now) + static_cast<double>(n_tokens);
  served_[client] = std::log2(sum) + half_lives(now);
  if (served_.size() >= forget_at_) forget(now);
}

double fairness::lately(uint64_t client, time_point now) const {
  return std::exp2(order_of(client) - half_lives(now));
}

double fairness::order_of(uint64_t client) const {
  const auto at = served_.find(client);
  return at != served_.end() ? at->second : -std::numeric_limits<double>::infinity();
}

void fairness::forget(time_point now) {
  const double one_token = half_lives(now);
  std::erase_if(served_, [&](const auto& one) { return one.second < one_token; });
  // Twice as many as are left, so that the visits cost O(1) for each client that is added.
  forget_at_ = std::max(least_forget, served_.size() * 2);
}

}  // namespace bitnet::schedule
