// Whatever happens around a request, its tokens are those that it gives alone.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <numeric>
#include <random>

#include "small_world.hpp"

namespace bitnet::schedule {
namespace {

using namespace testing_support;  // NOLINT(google-build-using-namespace): the fake world

struct asked {
  ids prompt;
  generate::options how;
  uint32_t n, n_best = 0;
  ticket id;
  std::shared_ptr<collector> got;
  bool cancelled = false, poisoned = false, has_deadline = false, slow = false;
};

class history {
 public:
  explicit history(uint32_t seed) : random_(seed), world_(limits(), how()) {
    world_.engine->tick();
    equip();
  }

  void play(int ticks) {
    for (int i = 0; i < ticks; ++i) {
      act();
      world_.engine->tick();
      world_.clock.now += std::chrono::nanoseconds(pick(200));
      if (::testing::Test::HasFailure()) return;
    }
    drain();
    for (const asked& a : all_) check(a);
    world_.expect_empty();
    check_counts();
  }

 private:
  uint32_t pick(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  bool one_in(uint32_t n) { return pick(n) == 0; }
  template <class T, std::size_t N>
  T one_of(const T (&of)[N]) {
    return of[pick(N)];
  }

  step_limits limits() {
    step_limits most = small_limits();
    most.max_tokens = one_of<uint32_t>({2, 5, 16, 40, 100, 512});
    most.max_sequences = one_of<uint32_t>({1, 2, 3, 5, 8});
    most.max_outputs = one_of<uint32_t>({2, 8});
    most.n_context = one_of<uint32_t>({130, 200, 330});
    if (one_in(4)) most.n_states = 1 + pick(10);
    if (most.n_states == 0 && one_in(4)) {
      most.window = one_of<uint32_t>({1, 17, 64, 100});
      most.window_keep = one_of<uint32_t>({0, 4, 70});
      most.max_tokens = std::min(most.max_tokens, 100U);
    }
    most.n_blocks = kv::blocks_for(most.n_context) + pick(12) + (most.window == 0 ? 0 : 4);
    return most;
  }
  options how() {
    options o;
    o.max_waiting = 12;
    o.ageing = std::chrono::microseconds(1 + pick(50));
    o.sink_patience = std::chrono::microseconds(one_of<int>({20, 300}));
    o.on_loss = [this](const failure&) -> result<std::unique_ptr<step_runner>> {
      return equipped_runner();
    };
    return o;
  }

  // Steps fail at random when they have several slices, and each alone goes well; those with the
  // poison in it always do.
  void equip() {
    world_.runner->fails = [this](std::span<const slice> slices) -> std::optional<failure> {
      if (lose_next_) {
        lose_next_ = false;
        return failure{BITNET_DEVICE_LOST, "pulled out"};
      }
      for (const slice& s : slices)
        if (std::ranges::find(s.tokens, poison) != s.tokens.end())
          return failure{BITNET_INTERNAL, "poison"};
      if (slices.size() > 1 && one_in(40)) return failure{BITNET_INTERNAL, "a whim"};
      return std::nullopt;
    };
    world_.runner->fails_to_copy = [this]() -> std::optional<failure> {
      if (!one_in(60) || ++failed_copies_ % 2 == 0) return std::nullopt;
      return failure{one_in(2) ? BITNET_DEVICE_LOST : BITNET_INTERNAL, "no copy"};
    };
  }
  std::unique_ptr<step_runner> equipped_runner() {
    auto next = world_.new_runner();
    equip();
    return next;
  }

  void act() {
    if (one_in(3)) ask();
    if (one_in(25) && !all_.empty()) {
      asked& a = all_[pick(static_cast<uint32_t>(all_.size()))];
      a.cancelled = true;
      world_.engine->cancel(a.id);
    }
    if (one_in(150)) world_.engine->replace(equipped_runner());
    if (one_in(150)) lose_next_ = true;
    for (asked& a : all_)
      if (a.slow && one_in(12)) read(a, 1 + pick(20));
  }
  void read(asked& a, std::size_t room) {
    a.got->room = room;
    if (std::exchange(a.got->rejected, false)) world_.engine->ready(a.id);
  }

  ids prompt(uint32_t n_context) {
    ids out = some_tokens(one_of<std::size_t>({1, 20, 64, 65, 100, 128}), pick(3));  // shared
    const ids own = some_tokens(pick(70), 100 + pick(1000));
    out.insert(out.end(), own.begin(), own.end());
    out.resize(std::min<std::size_t>(out.size(), n_context - 1));
    return out;
  }

  void ask() {
    asked a{.prompt = prompt(world_.most.n_context), .how = {}, .n = 1, .id = 0, .got = nullptr};
    if (one_in(4)) a.n = 2 + pick(3);
    if (one_in(30)) {
      a.poisoned = true;
      a.prompt[pick(static_cast<uint32_t>(a.prompt.size()))] = poison;
    }
    a.how.max_tokens = one_in(20) ? -1 : static_cast<int64_t>(pick(50));
    a.how.sampling.seed = pick(1000);
    if (one_in(2)) a.how.sampling.temperature = 0;
    if (one_in(5)) a.how.logprobs = true;
    a.how.ignore_end = one_in(2);
    request r;
    r.prompt = a.prompt;
    r.generation = a.how;
    r.n = a.n;
    r.client = pick(3);
    r.priority = one_in(3) ? static_cast<int32_t>(pick(4)) : 0;
    if (one_in(12)) {
      a.has_deadline = true;
      r.deadline = world_.clock.now + std::chrono::microseconds(pick(60));
    }
    if (a.n > 1 && one_in(3)) r.n_best = a.n_best = 1 + pick(a.n - 1);
    a.got = std::make_shared<collector>(a.n, a.n_best);
    a.slow = one_in(6);
    if (a.slow) a.got->room = pick(10);
    r.events = a.got;
    const auto t = world_.engine->submit(std::move(r));
    if (!t) {
      EXPECT_EQ(t.error().why, rejection::reason::requests_waiting) << t.error().what.message;
      return;
    }
    a.id = *t;
    all_.push_back(std::move(a));
  }

  void drain() {
    const auto is_over = [](const asked& a) { return a.got->is_over(); };
    int ticks = 0;
    while (!std::ranges::all_of(all_, is_over)) {
      if (++ticks > 200000) FAIL() << "something waits for ever";
      for (asked& a : all_) read(a, SIZE_MAX);
      world_.engine->tick();
      if (::testing::Test::HasFailure()) return;
    }
    world_.run();
  }

  void check(const asked& a) const {
    uint32_t n_ended = 0;
    for (uint32_t i = 0; i < a.n; ++i) {
      const collector::choice& got = a.got->choices[i];
      if (a.n_best != 0 && got.ends == 0) {
        ASSERT_TRUE(got.tokens.empty()) << "of a choice that is not delivered";
        continue;
      }
      ++n_ended;
      const expected_choice want = alone(a.prompt, a.how, i, world_.most);
      SCOPED_TRACE(::testing::Message() << "request " << a.id << ", choice " << i);
      ASSERT_EQ(got.ends, 1);
      ASSERT_LE(got.tokens.size(), want.tokens.size());
      ASSERT_TRUE(std::equal(got.tokens.begin(), got.tokens.end(), want.tokens.begin()));
      if (a.how.logprobs) {
        for (const auto& one : got.logprobs) ASSERT_LT(one.chosen, 0);
      }
      check_end(a, got, want);
    }
    ASSERT_EQ(n_ended, a.n_best != 0 ? a.n_best : a.n);
  }

  static void check_end(const asked& a, const collector::choice& got, const expected_choice& want) {
    const event& end = got.last;
    ASSERT_EQ(end.used.prompt_tokens, a.prompt.size());
    ASSERT_LT(end.used.cached_tokens, a.prompt.size());
    if (end.what == event::kind::failed) {
      if (!a.poisoned || end.why.message != "poison") {
        ASSERT_EQ(end.why.status, BITNET_TIMEOUT) << end.why.message;
        ASSERT_TRUE(a.has_deadline || a.slow) << end.why.message;
      }
      return;
    }
    ASSERT_FALSE(a.poisoned && !a.cancelled && a.how.max_tokens != 0);
    if (end.stop_reason == BITNET_STOP_CANCELLED) {
      ASSERT_TRUE(a.cancelled);
      return;
    }
    ASSERT_EQ(end.stop_reason, want.stop_reason);
    ASSERT_EQ(got.tokens, want.tokens);
    ASSERT_EQ(got.text, want.text);
    ASSERT_EQ(end.used.generated_tokens, want.tokens.size());
  }

  void check_counts() const {
    const statistics c = world_.engine->counted();
    uint64_t ends = 0;
    uint64_t choices = 0;
    for (const uint64_t n : c.ended) ends += n;
    for (const asked& a : all_) choices += a.n;
    EXPECT_EQ(c.accepted, all_.size());
    EXPECT_EQ(ends + c.failed, choices);
    EXPECT_LE(c.prefix_hits, c.prefix_queries);
    EXPECT_EQ(std::accumulate(c.steps_by_tokens.begin(), c.steps_by_tokens.end(), uint64_t{0}),
              c.steps);
    EXPECT_GE(c.step_tokens, c.steps);
    if (std::getenv("BITNET_TEST_SEEDS") != nullptr)
      std::cout << "preempted " << c.preemptions << " steps " << c.steps << " failed "
                << c.failed_steps << " lost " << c.runners_lost << " replaced "
                << c.runners_replaced << " recomputed " << c.recomputed_tokens << " expired "
                << c.expired << " stalled " << c.stalled << " failures " << c.failed << " hits "
                << c.prefix_hits << "/" << c.prefix_queries << " copied " << c.copied_blocks
                << " evicted " << c.evictions << " rejected " << c.rejected[3] << "\n";
  }

  std::mt19937 random_;
  bool lose_next_ = false;
  int failed_copies_ = 0;
  world world_;
  std::vector<asked> all_;
};

uint32_t n_seeds() {
  const char* wished = std::getenv("BITNET_TEST_SEEDS");  // more of them, by hand
  return wished != nullptr ? static_cast<uint32_t>(std::atoi(wished)) : 20;
}

TEST(random_histories, each_request_gives_what_it_gives_alone) {
  for (uint32_t seed = 0; seed < n_seeds(); ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    history(seed).play(300);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace bitnet::schedule
