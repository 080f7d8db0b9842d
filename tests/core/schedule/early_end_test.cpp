// Steps that are ended early, since no request needs them any more.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>

#include "base/cancel_flags.hpp"
#include "schedule/inbox.hpp"
#include "schedule/running_step.hpp"
#include "small_world.hpp"

namespace bitnet::schedule {
namespace {

using namespace testing_support;  // NOLINT(google-build-using-namespace): the fake world
using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A scheduler of real time, whose device asks for its flag while it computes.
class early_end : public ::testing::Test {
 protected:
  void open(const step_limits& most = small_limits()) {
    options o;
    o.step_flag = flag_.get();
    auto runner = std::make_unique<fake_runner>(most, clock_);
    runner->fails = [this](std::span<const slice> slices) { return compute(slices); };
    runner_ = runner.get();
    auto made = scheduler::make(std::move(runner), words(), std::move(o));
    ASSERT_TRUE(made) << made.error().message;
    engine_ = *std::move(made);
    most_ = most;
  }

  // A step with a prompt of `slow_from_` tokens or more takes until its flag is set or, where it
  // stays unset, `patience_`. `during` is called once, when the first such step has begun.
  std::optional<failure> compute(std::span<const slice> slices) {
    std::size_t most = 0;
    for (const slice& s : slices) most = std::max(most, s.tokens.size());
    if (most < slow_from_) return std::nullopt;
    ++slow_steps_;
    if (during_) std::exchange(during_, {})();
    const auto end = clock::now() + patience_;
    while (!cancel_flags::is_set(token_))
      if (clock::now() >= end) return std::nullopt;
    return failure{status_, "the device was asked to end"};
  }

  world::given submit(ids prompt, uint32_t n = 1, std::optional<milliseconds> deadline = {}) {
    request r = world::ask(std::move(prompt), 5, n);
    if (deadline) r.deadline = clock::now() + *deadline;
    auto got = std::static_pointer_cast<collector>(r.events);
    auto t = engine_->submit(std::move(r));
    EXPECT_TRUE(t) << t.error().what.message;
    return {t.value_or(0), std::move(got)};
  }
  void run() {
    while (engine_->tick()) {
    }
  }
  void expect_alone(const world::given& one, const ids& prompt) {
    generate::options o;
    o.max_tokens = 5;
    o.ignore_end = true;
    for (uint32_t i = 0; i < one.got->choices.size(); ++i)
      EXPECT_EQ(one.got->choices[i].tokens, alone(prompt, o, i, most_).tokens);
  }
  void expect_ended_early(uint64_t n) {
    const statistics c = engine_->counted();
    EXPECT_EQ(c.cancelled_steps, n);
    EXPECT_EQ(c.failed_steps, 0U);
    EXPECT_EQ(c.blocks_used + c.blocks_reserved + c.states_used, 0U);
    EXPECT_FALSE(cancel_flags::is_set(token_)) << "the next step begins without it";
  }

  cancel_flags flags_;
  const cancel_flags::owned flag_ = flags_.make();
  const uint64_t token_ = cancel_flags::token_of(*flag_);
  fake_clock clock_;
  fake_runner* runner_ = nullptr;
  step_limits most_;
  std::unique_ptr<scheduler> engine_;
  std::function<void()> during_;
  std::size_t slow_from_ = 32;
  milliseconds patience_{60'000};
  std::atomic<int> slow_steps_{0};
  bitnet_status status_ = BITNET_CANCELLED;
};

TEST_F(early_end, comes_when_the_only_request_is_cancelled) {
  for (const uint32_t n_states : {0U, 12U}) {
    step_limits most = small_limits();
    most.n_states = n_states;
    open(most);
    const auto one = submit(some_tokens(300, 1), 2);
    during_ = [&] { engine_->cancel(one.id); };
    const auto begin = clock::now();
    run();
    EXPECT_LT(clock::now() - begin, patience_) << "it did not wait for the device";
    for (const auto& c : one.got->choices) {
      EXPECT_EQ(c.last.what, event::kind::end);
      EXPECT_EQ(c.last.stop_reason, BITNET_STOP_CANCELLED);
    }
    expect_ended_early(1);
    slow_from_ = 1000;
    const auto again = submit(some_tokens(300, 1));  // by blocks that the early end left undefined
    run();
    EXPECT_EQ(again.got->choices[0].last.used.cached_tokens, 0U) << "what was dropped is not known";
    expect_alone(again, some_tokens(300, 1));
    expect_ended_early(1);
    slow_from_ = 32;
  }
}

// Chunks that were whole before stay known; the one that was dropped does not.
TEST_F(early_end, keeps_what_the_steps_before_computed) {
  open();
  const ids prompt = some_tokens(300, 1);
  slow_from_ = 1000;
  const auto one = submit(prompt);
  for (int i = 0; i < 3; ++i) engine_->tick();  // 192 tokens
  slow_from_ = 32;
  during_ = [&] { engine_->cancel(one.id); };
  run();
  expect_ended_early(1);
  slow_from_ = 1000;
  const auto again = submit(prompt);
  run();
  EXPECT_EQ(again.got->choices[0].last.used.cached_tokens, 192U);
  expect_alone(again, prompt);
}

TEST_F(early_end, comes_at_the_deadline_of_the_only_request) {
  open();
  const auto one = submit(some_tokens(300, 1), 1, milliseconds(60));
  const auto begin = clock::now();
  run();
  EXPECT_LT(clock::now() - begin, patience_);
  EXPECT_EQ(one.got->choices[0].last.what, event::kind::failed);
  EXPECT_EQ(one.got->choices[0].last.why.status, BITNET_TIMEOUT);
  EXPECT_EQ(engine_->counted().expired, 1U);
  expect_ended_early(1);
}

TEST_F(early_end, comes_when_the_scheduler_is_stopped) {
  open();
  const auto one = submit(some_tokens(40, 1)), two = submit(some_tokens(40, 2));
  during_ = [&] { engine_->stop(); };
  run();
  for (const auto* r : {&one, &two})
    EXPECT_EQ(r->got->choices[0].last.why.status, BITNET_CANCELLED);
  expect_ended_early(1);
}

// Of three requests in a step of 64 tokens, one is cancelled in time, one is past its deadline, and
// the third decides.
TEST_F(early_end, comes_when_the_last_of_several_needs_it_no_more) {
  struct row {
    const char* why;
    std::optional<milliseconds> deadline;
    bool is_cancelled;
    uint64_t n_early;
  };
  for (const row& r : {row{"it goes on", std::nullopt, false, 0},
                       row{"it is cancelled, too", std::nullopt, true, 1},
                       row{"its deadline passes, too", milliseconds(90), false, 1},
                       row{"its deadline is far", milliseconds(600'000), false, 0}}) {
    SCOPED_TRACE(r.why);
    slow_from_ = 16;
    patience_ = milliseconds(r.n_early == 0 ? 300 : 60'000);
    open();
    const auto cancelled = submit(some_tokens(16, 1));
    const auto expired = submit(some_tokens(16, 2), 1, milliseconds(60));
    const auto third = submit(some_tokens(20, 3), 1, r.deadline);
    during_ = [&] {
      slow_from_ = 1000;
      engine_->cancel(cancelled.id);
      if (r.is_cancelled) engine_->cancel(third.id);
    };
    run();
    EXPECT_EQ(slow_steps_, 1);
    slow_steps_ = 0;
    EXPECT_EQ(cancelled.got->choices[0].last.stop_reason, BITNET_STOP_CANCELLED);
    EXPECT_EQ(expired.got->choices[0].last.why.status, BITNET_TIMEOUT);
    expect_ended_early(r.n_early);
    if (r.n_early == 0) {
      EXPECT_EQ(third.got->choices[0].last.stop_reason, BITNET_STOP_LENGTH);
      expect_alone(third, some_tokens(20, 3));
    }
  }
}

// A cancel that comes after the tick took its commands, and before the step begins.
TEST_F(early_end, sees_what_came_just_before_the_step) {
  running_step step(flag_.get());
  const step_member members[] = {{7, clock::time_point::max()}, {8, clock::time_point::max()}};
  step.cancel(7);
  step.begin(members);
  EXPECT_FALSE(cancel_flags::is_set(token_)) << "what was cancelled before is not in the step";
  step.cancel(7);
  step.cancel(9);
  EXPECT_FALSE(cancel_flags::is_set(token_));
  step.cancel(8);
  EXPECT_TRUE(cancel_flags::is_set(token_));
  EXPECT_TRUE(step.end());
  step.cancel_all();
  EXPECT_FALSE(cancel_flags::is_set(token_)) << "no step runs";

  inbox in({small_limits(), 1, 1, 1}, flag_.get());
  in.add(inbox::command::kind::cancel, 8);
  in.add(inbox::command::kind::ready, 7);
  in.begin_step(std::span(members).last(1));
  EXPECT_TRUE(cancel_flags::is_set(token_)) << "the command waits to be taken";
  EXPECT_TRUE(in.end_step());
  in.begin_step(std::span(members).first(1));
  EXPECT_FALSE(cancel_flags::is_set(token_));
  EXPECT_FALSE(in.end_step());
  in.stop();
  in.begin_step(members);
  EXPECT_TRUE(in.end_step()) << "it was stopped before the step";
}

// A device that ends a step without being asked to has failed.
TEST_F(early_end, without_a_request_is_a_failure) {
  open();
  runner_->fails = [](auto) { return failure{BITNET_CANCELLED, "of its own will"}; };
  const auto one = submit(some_tokens(40, 1));
  run();
  EXPECT_EQ(one.got->choices[0].last.what, event::kind::failed);
  EXPECT_EQ(one.got->choices[0].last.why.message, "of its own will");
  EXPECT_EQ(engine_->counted().cancelled_steps, 0U);
  EXPECT_EQ(engine_->counted().failed_steps, 1U);
}

// A step that fails while it is to end early has failed, whatever was asked.
TEST_F(early_end, does_not_hide_a_failure) {
  open();
  status_ = BITNET_INTERNAL;
  const auto one = submit(some_tokens(40, 1));
  during_ = [&] { engine_->cancel(one.id); };
  run();
  EXPECT_EQ(one.got->choices[0].last.what, event::kind::failed);
  EXPECT_EQ(engine_->counted().failed_steps, 1U);
}

// Other threads cancel while steps run: each request ends once, and those that were not cancelled
// give what they give alone.
TEST_F(early_end, is_asked_for_by_other_threads_while_steps_run) {
  open();
  slow_from_ = 48;
  patience_ = milliseconds(50);
  std::jthread runs([&] { engine_->run(); });
  std::vector<std::pair<world::given, uint32_t>> kept;
  uint64_t n_choices = 0;
  for (uint32_t i = 0; i < 30; ++i) {
    const bool is_long = i % 3 != 0;
    n_choices += 1 + i % 2;
    const auto one = submit(some_tokens(is_long ? 200 : 10, i), 1 + i % 2,
                            i % 5 == 4 ? std::optional(milliseconds(3)) : std::nullopt);
    std::this_thread::sleep_for(milliseconds(2));  // so that cancels fall anywhere in a step
    if (is_long || i % 5 == 4)
      engine_->cancel(one.id);
    else
      kept.emplace_back(one, i);
  }
  const auto n_ended = [&] {
    const statistics c = engine_->counted();
    return std::accumulate(c.ended.begin(), c.ended.end(), c.failed);
  };
  while (n_ended() != n_choices) std::this_thread::yield();
  patience_ = milliseconds(60'000);
  const int before = slow_steps_;
  const auto last = submit(some_tokens(200, 99));
  while (slow_steps_ == before) std::this_thread::yield();
  engine_->cancel(last.id);
  engine_->close();
  runs.join();
  EXPECT_EQ(last.got->choices[0].last.stop_reason, BITNET_STOP_CANCELLED);
  for (const auto& [one, i] : kept) expect_alone(one, some_tokens(10, i));
  EXPECT_EQ(engine_->counted().failed_steps, 0U);
  EXPECT_GT(engine_->counted().cancelled_steps, 0U);
}

}  // namespace
}  // namespace bitnet::schedule
