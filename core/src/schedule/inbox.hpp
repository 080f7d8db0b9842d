#pragma once
// Queues the commands of other threads for the scheduler's thread, and has the facts by which new
// requests are rejected.
//
// Threads  any; only the scheduler's thread calls take(), settle(), begin_step(), end_step(),
//          set_runner(), set_lost() and wait(). The mutex is locked only while commands are moved.

#include <condition_variable>
#include <cstdint>
#include <expected>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/cancel_flags.hpp"
#include "generate/row_listener.hpp"
#include "schedule/admission.hpp"
#include "schedule/running_step.hpp"
#include "schedule/sequence.hpp"
#include "schedule/statistics.hpp"
#include "schedule/step.hpp"
#include "schedule/transfer.hpp"

namespace bitnet::schedule {

class inbox {
 public:
  struct command {
    enum class kind : uint8_t { submit, cancel, ready };
    kind what = kind::submit;
    ticket of = 0;
    std::unique_ptr<job> added;  // the submitted job
  };
  struct contents {
    std::vector<command> commands;  // in the order in which they came
    std::vector<std::shared_ptr<transfer>> transfers;
    std::unique_ptr<step_runner> runner;  // the next runner; nullptr: it stays the same
    // The next listener, nullptr for none; nullopt: it stays the same.
    std::optional<std::shared_ptr<generate::row_listener>> listener;
    bool closed = false, stopped = false;
  };

  // `step_flag`: see options::step_flag.
  inbox(const gate& g, cancel_flags::flag* step_flag) : gate_(g), step_(step_flag) {}

  // Returns the limits by which the request's job is to be made, or why the request is rejected.
  // The rejection is counted, as all are.
  std::expected<step_limits, rejection> check(const request& r);
  // Queues the job, unless the queue has become full or closed since check().
  std::expected<ticket, rejection> add(std::unique_ptr<job> j);
  std::unexpected<rejection> count(rejection why);
  void add(command::kind what, ticket of);
  // Queues a transfer of a sequence to the host's memory or from there.
  result<void> add(std::shared_ptr<transfer> t);
  void replace(std::unique_ptr<step_runner> runner);
  void set_listener(std::shared_ptr<generate::row_listener> l);
  void close();
  void stop();
  [[nodiscard]] statistics counted() const;

  // Moves what came to `into`, whose vectors are empty. Returns whether anything came.
  bool take(contents& into);
  // Notes that `n_left` requests with `tokens_left` prompt tokens left the queue, and publishes
  // `now`.
  void settle(uint64_t n_left, uint64_t tokens_left, const statistics& now);
  // A step of `members` runs between the two calls. A command that comes meanwhile, or came since
  // the last take(), may end it early; end_step() returns whether one did.
  void begin_step(std::span<const step_member> members);
  bool end_step();
  // From now on requests are checked against `most`, or all rejected for the reason `why`.
  void set_runner(const step_limits& most);
  void set_lost(const failure& why);
  // Waits until something comes, or until the time `until`.
  void wait(std::optional<time_point> until);

 private:
  std::optional<rejection> find_closed() const;  // the lock is held

  mutable std::mutex mutex_;
  std::condition_variable came_;
  gate gate_;
  contents in_;
  bool changed_ = false;  // in_ has something new
  running_step step_;
  std::optional<failure> lost_;
  uint64_t n_waiting_ = 0, tokens_waiting_ = 0;
  ticket last_ = 0;
  statistics counted_;
};

}  // namespace bitnet::schedule
