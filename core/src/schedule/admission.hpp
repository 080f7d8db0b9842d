#pragma once
// Which requests are accepted into the queue, and which waiting one is the next to run.
//
// Order    the higher priority, where each `ageing` of waiting counts as one more, so that no
//          request waits for ever. Among equals the client that was served less lately, then the
//          request that arrived first. A smaller request does not overtake the first.
// Threads  one at a time.

#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/fairness.hpp"
#include "schedule/request.hpp"
#include "schedule/step.hpp"

namespace bitnet::schedule {

struct sequence;

// The limits that a request is checked against before it is accepted.
struct gate {
  step_limits most;
  uint32_t max_choices = 0, max_waiting = 0;
  uint64_t max_waiting_tokens = 0;
};

// The most tokens that a choice has in its blocks: the last sampled token needs no place.
uint64_t most_tokens_of(std::size_t n_prompt, int64_t max_tokens, const step_limits& most);
// The most blocks that a sequence of `tokens` tokens holds at a time.
uint32_t most_blocks_of(uint64_t tokens, const step_limits& most);
// The most prompt tokens of one sequence in a step.
uint32_t most_chunk_of(const step_limits& most);

// Returns why the request could not run even if nothing else did; nullopt: it could.
std::optional<rejection> find_fault(const request& r, const gate& by);
// Returns why a prompt of `n_prompt` tokens cannot wait beside `n_waiting` others, which have
// `n_tokens` tokens together; nullopt: it can.
std::optional<rejection> find_overload(std::size_t n_prompt, uint64_t n_waiting, uint64_t n_tokens,
                                       const gate& by);

struct waiter {
  sequence* who = nullptr;
  uint64_t arrival = 0;  // number of its request; lower: it arrived earlier
  uint64_t client = 0;
  int32_t priority = 0;
  nanoseconds waited{};  // in earlier waits, before `since`
  time_point since;
  bool is_new = false;  // it never ran
  bool may_run = true;  // false: its sink is full
};

class waiting_queue {
 public:
  // `served` is borrowed.
  waiting_queue(nanoseconds ageing, const fairness& served);

  void add(const waiter& w);
  bool remove(const sequence* who);
  void set_may_run(const sequence* who, bool may);
  // The next waiter to run, of those with may_run; nullptr: none. O(n).
  [[nodiscard]] const waiter* first(time_point now) const;
  // The priority of `w`, raised by one for each `ageing` of waiting.
  [[nodiscard]] int64_t rank_of(const waiter& w, time_point now) const;
  [[nodiscard]] const std::vector<waiter>& all() const { return waiters_; }

 private:
  nanoseconds ageing_;
  const fairness& served_;
  std::vector<waiter> waiters_;
};

}  // namespace bitnet::schedule
