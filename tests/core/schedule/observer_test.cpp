// What the observer of a request is given: the steps that it has tokens in, and its ends.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "schedule/step_observer.hpp"
#include "small_world.hpp"

namespace bitnet::schedule {
namespace {

using namespace testing_support;  // NOLINT(google-build-using-namespace): the fake world

// Counts as a plugin does: what `runner` computed while the request was in its steps.
class follower final : public step_observer {
 public:
  explicit follower(const uint64_t& steps_of_runner) : steps_of_runner_(steps_of_runner) {}

  void enter(const step_runner& r) override {
    EXPECT_EQ(on_, nullptr) << "it entered twice";
    on_ = &r;
    entered_at_ = steps_of_runner_;
    ++entries;
  }
  void leave(const step_runner& r) override {
    EXPECT_EQ(on_, &r) << "it left another runner, or was in none";
    on_ = nullptr;
    counted += steps_of_runner_ - entered_at_;
  }
  void note(const step_part& p) override {
    EXPECT_NE(on_, nullptr);
    parts.push_back(p);
  }
  void end(const event& e, std::span<const int32_t> tokens) override {
    EXPECT_EQ(on_, nullptr) << "counters of an end are read when it is reported";
    ends.push_back({e.what, e.stop_reason, {tokens.begin(), tokens.end()}, counted});
  }

  struct ending {
    event::kind what;
    uint32_t stop_reason;
    ids tokens;
    uint64_t counted;  // steps, as the counters have them
  };
  int entries = 0;
  uint64_t counted = 0;
  std::vector<step_part> parts;
  std::vector<ending> ends;

 private:
  const uint64_t& steps_of_runner_;
  const step_runner* on_ = nullptr;
  uint64_t entered_at_ = 0;
};

class observed : public ::testing::Test {
 protected:
  observed() { count_steps(*w_.runner); }

  void count_steps(fake_runner& r) {
    r.fails = [this](std::span<const slice>) -> std::optional<failure> {
      ++steps_;
      return std::nullopt;
    };
  }
  std::shared_ptr<follower> submit(std::size_t n_prompt, uint32_t salt, int64_t max_tokens,
                                   uint32_t n = 1) {
    auto out = std::make_shared<follower>(steps_);
    request r = world::ask(some_tokens(n_prompt, salt), max_tokens, n);
    r.observer = out;
    last_ = w_.submit(std::move(r));
    return out;
  }

  uint64_t steps_ = 0;  // that runners began
  world w_;
  world::given last_;
};

TEST_F(observed, alone_has_every_step_for_itself) {
  const auto seen = submit(10, 1, 5);
  w_.run();
  ASSERT_EQ(seen->ends.size(), 1U);
  EXPECT_EQ(seen->ends[0].tokens, last_.got->choices[0].tokens);
  EXPECT_EQ(seen->ends[0].stop_reason, uint32_t{BITNET_STOP_LENGTH});
  EXPECT_EQ(seen->entries, 1);
  EXPECT_EQ(seen->ends[0].counted, steps_);
  EXPECT_EQ(seen->parts.size(), steps_);
  uint64_t own = 0;
  for (const step_part& p : seen->parts) {
    EXPECT_EQ(p.sequences, 1U);
    EXPECT_EQ(p.own_tokens, p.tokens);
    own += p.own_tokens;
  }
  EXPECT_EQ(own, 10U + 5U - 1U) << "the last token is never computed";
}

TEST_F(observed, among_others_knows_which_steps_it_shared) {
  const auto longer = submit(4, 1, 30);
  const auto shorter = submit(4, 2, 3);
  w_.submit(some_tokens(4, 3), 8);  // that nothing follows
  w_.run();
  EXPECT_EQ(shorter->ends.at(0).counted, shorter->parts.size());
  EXPECT_LT(shorter->parts.size(), longer->parts.size());
  EXPECT_EQ(longer->ends.at(0).counted, longer->parts.size());
  EXPECT_EQ(longer->parts.size(), steps_);
  uint32_t most = 0;
  for (const step_part& p : longer->parts) {
    EXPECT_LE(p.own_tokens, p.tokens);
    most = std::max(most, p.sequences);
  }
  EXPECT_EQ(most, 3U);
  EXPECT_EQ(longer->parts.back().sequences, 1U) << "the others had ended";
}

TEST_F(observed, stands_still_and_is_given_no_steps_of_others) {
  const auto still = submit(4, 1, 20);
  const auto of = last_;
  of.got->room = 2;
  submit(4, 2, 40);
  w_.run();
  ASSERT_TRUE(still->ends.empty());
  const std::size_t before = still->parts.size();
  EXPECT_EQ(still->counted, before) << "it left when its sink was full";
  EXPECT_GT(steps_, before + 20);
  of.got->room = SIZE_MAX;
  w_.engine->ready(of.id);
  w_.run();
  EXPECT_EQ(still->entries, 2);
  EXPECT_EQ(still->ends.at(0).counted, still->parts.size());
}

TEST_F(observed, with_choices_counts_each_step_once) {
  const auto seen = submit(6, 1, 7, 3);
  w_.run();
  ASSERT_EQ(seen->ends.size(), 3U);
  EXPECT_EQ(seen->counted, steps_);
  EXPECT_EQ(seen->parts.size(), steps_);
  EXPECT_EQ(seen->parts.back().sequences, 3U);
  EXPECT_EQ(seen->parts.back().own_tokens, 3U);
}

TEST_F(observed, that_is_cancelled_or_fails_ends_with_what_it_had) {
  const auto cancelled = submit(4, 1, -1);
  const ticket id = last_.id;
  for (int i = 0; i < 5; ++i) w_.engine->tick();
  w_.engine->cancel(id);
  w_.run();
  ASSERT_EQ(cancelled->ends.size(), 1U);
  EXPECT_EQ(cancelled->ends[0].stop_reason, uint32_t{BITNET_STOP_CANCELLED});
  EXPECT_EQ(cancelled->ends[0].counted, cancelled->parts.size());
  EXPECT_GT(cancelled->ends[0].tokens.size(), 0U);

  w_.runner->fails = [this](std::span<const slice>) {
    ++steps_;
    return std::optional(failure{BITNET_INTERNAL, "it broke"});
  };
  const auto failed = submit(4, 2, 5);
  w_.run();
  ASSERT_EQ(failed->ends.size(), 1U);
  EXPECT_EQ(failed->ends[0].what, event::kind::failed);
  EXPECT_EQ(failed->ends[0].counted, 1U) << "kernels may have run in a step that failed";
}

TEST_F(observed, leaves_a_runner_before_it_goes) {
  const auto seen = submit(4, 1, 20);
  for (int i = 0; i < 5; ++i) w_.engine->tick();
  auto next = w_.new_runner();
  count_steps(*next);
  w_.engine->replace(std::move(next));
  w_.run();
  EXPECT_EQ(seen->entries, 2);
  EXPECT_EQ(seen->ends.at(0).counted, steps_);
  EXPECT_EQ(seen->ends.at(0).tokens.size(), 20U);
}

}  // namespace
}  // namespace bitnet::schedule
