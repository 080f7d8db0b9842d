#pragma once
// Commands of other threads to the one that ticks, and the facts by which their requests are
// refused.
//
// Threads  any; take(), settle(), begin_step(), end_step(), set_runner(), set_lost() and wait() are
//          the ticking one's. The lock is held no longer than it takes to move what came.

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
    std::unique_ptr<job> added;  // of a submit
  };
  struct contents {
    std::vector<command> commands;  // in the order in which they came
    std::vector<std::shared_ptr<transfer>> transfers;
    std::unique_ptr<step_runner> runner;  // to go on with; nullptr: no other
    // In place of the one before, which may be nullptr; nullopt: no change.
    std::optional<std::shared_ptr<generate::row_listener>> listener;
    bool closed = false, stopped = false;
  };

  // `step_flag`: see options::step_flag.
  inbox(const gate& g, cancel_flags::flag* step_flag) : gate_(g), step_(step_flag) {}

  // The limits that a job of the request is to be made by, or why it is not taken. Counted, as all
  // refusals are.
  std::expected<step_limits, refusal> check(const request& r);
  // Puts the job into the queue, unless others came first.
  std::expected<ticket, refusal> add(std::unique_ptr<job> j);
  std::unexpected<refusal> count(refusal why);
  void add(command::kind what, ticket of);
  // A sequence that is to go to the host's memory, or comes from there.
  result<void> add(std::shared_ptr<transfer> t);
  void replace(std::unique_ptr<step_runner> runner);
  void set_listener(std::shared_ptr<generate::row_listener> l);
  void close();
  void stop();
  [[nodiscard]] statistics counted() const;

  // Moves what came to `into`, whose vectors are empty; whether there was anything.
  bool take(contents& into);
  // So many requests left the queue, and their prompts' tokens; and the counts for other threads.
  void settle(uint64_t n_left, uint64_t tokens_left, const statistics& now);
  // A step of these requests runs between the two; what comes meanwhile, or came since the last
  // take(), may end it early. end_step(): whether it did.
  void begin_step(std::span<const step_member> members);
  bool end_step();
  // From now on requests are checked by these limits; or they are refused, for that reason.
  void set_runner(const step_limits& most);
  void set_lost(const failure& why);
  // Until something comes, or until then.
  void wait(std::optional<time_point> until);

 private:
  std::optional<refusal> find_closed() const;  // the lock is held

  mutable std::mutex turn_;
  std::condition_variable came_;
  gate gate_;
  contents in_;
  bool changed_ = false;  // in_
  running_step step_;
  std::optional<failure> lost_;
  uint64_t n_waiting_ = 0, tokens_waiting_ = 0;
  ticket last_ = 0;
  statistics counted_;
};

}  // namespace bitnet::schedule
