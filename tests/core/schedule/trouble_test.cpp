// Full sinks, steps that fail, devices that are lost or replaced, and the end of a scheduler.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "generate/text_tokens.hpp"
#include "grammar/gbnf.hpp"
#include "small_world.hpp"

namespace bitnet::schedule {
namespace {

using namespace testing_support;  // NOLINT(google-build-using-namespace): the fake world
using reason = rejection::reason;
using std::chrono::nanoseconds;

expected_choice alone(const world& w, const ids& prompt, int64_t max_tokens, uint32_t choice = 0) {
  generate::options o;
  o.max_tokens = max_tokens;
  o.ignore_end = true;
  return testing_support::alone(prompt, o, choice, w.most);
}

TEST(trouble, a_full_sink_pauses_its_request_alone) {
  world w;
  const ids slow_prompt = some_tokens(10, 1);
  const auto slow = w.submit(slow_prompt, 20, 2);
  const auto quick = w.submit(some_tokens(10, 2), 20);
  slow.got->room = 7;
  w.run();
  EXPECT_TRUE(quick.got->is_over());
  EXPECT_TRUE(slow.got->rejected);
  EXPECT_EQ(w.engine->counted().running_paused, 2U) << "they keep their blocks";
  EXPECT_GT(w.engine->counted().blocks_used, 0U);
  EXPECT_FALSE(w.engine->tick()) << "nothing to do until a reader takes events";
  slow.got->room = 3;
  w.engine->ready(slow.id);
  w.run();
  EXPECT_FALSE(slow.got->is_over());
  slow.got->room = SIZE_MAX;
  w.engine->ready(slow.id);
  w.engine->ready(quick.id);
  w.run();
  for (uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(slow.got->choices[i].tokens, alone(w, slow_prompt, 20, i).tokens);
    EXPECT_EQ(slow.got->choices[i].text, alone(w, slow_prompt, 20, i).text);
    EXPECT_EQ(slow.got->choices[i].last.stop_reason, BITNET_STOP_LENGTH);
  }
  w.expect_empty();
}

TEST(trouble, a_reader_that_stops_for_too_long_gets_an_error) {
  options o;
  o.sink_patience = std::chrono::seconds(5);
  world w(small_limits(), o);
  const auto two = w.submit(some_tokens(10, 1), 4, 2);
  two.got->room = 7;  // all but the last piece of one of them
  w.run();
  EXPECT_EQ(two.got->choices[0].ends + two.got->choices[1].ends, 1);
  w.clock.now += std::chrono::seconds(4);
  EXPECT_FALSE(w.engine->tick());
  w.clock.now += std::chrono::seconds(1);
  w.run();
  EXPECT_TRUE(two.got->is_over());
  int failed = 0;
  for (const auto& c : two.got->choices) {
    if (c.last.what != event::kind::failed) {
      EXPECT_EQ(c.tokens.size(), 4U) << "its sink took all of it";
      continue;
    }
    ++failed;
    EXPECT_EQ(c.last.why.status, BITNET_TIMEOUT);
    EXPECT_NE(c.last.why.message.find("not read for 5 seconds"), std::string::npos);
  }
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(w.engine->counted().stalled, 1U);
  w.expect_empty();
}

TEST(trouble, a_paused_request_can_be_cancelled) {
  world w;
  const auto one = w.submit(some_tokens(10, 1), 20);
  one.got->room = 3;
  w.run();
  w.engine->cancel(one.id);
  w.run();
  EXPECT_EQ(one.got->choices[0].last.stop_reason, BITNET_STOP_CANCELLED);
  EXPECT_EQ(one.got->choices[0].tokens.size(), 3U);
  w.expect_empty();
}

TEST(trouble, the_urgent_take_the_place_of_unread_requests) {
  options o;
  o.max_running = 1;
  world w(small_limits(), o);
  const auto slow = w.submit(some_tokens(10, 1), 20);
  slow.got->room = 3;
  w.run();
  request r = world::ask(some_tokens(10, 2), 5);
  r.priority = 1;
  const auto urgent = w.submit(std::move(r));
  const auto other = w.submit(some_tokens(10, 3), 5);
  w.run();
  EXPECT_TRUE(urgent.got->is_over());
  EXPECT_TRUE(other.got->is_over()) << "a request that cannot go on takes no place again";
  EXPECT_EQ(w.engine->counted().waiting_paused, 1U);
  slow.got->room = SIZE_MAX;
  w.engine->ready(slow.id);
  w.run();
  EXPECT_EQ(slow.got->choices[0].tokens, alone(w, some_tokens(10, 1), 20).tokens);
}

TEST(trouble, a_failing_step_fails_the_request_whose_fault_it_is) {
  for (const uint32_t n_states : {0U, 12U}) {
    step_limits most = small_limits();
    most.n_states = n_states;
    world w(most);
    std::vector<world::given> all;
    for (uint32_t i = 0; i < 6; ++i) all.push_back(w.submit(some_tokens(30 + i, i), 20));
    ids bad = some_tokens(200, 9);
    bad[150] = poison;
    const auto culprit = w.submit(bad, 20, 3);
    w.runner->fails = [](std::span<const slice> slices) -> std::optional<failure> {
      for (const slice& s : slices)
        if (std::ranges::find(s.tokens, poison) != s.tokens.end())
          return failure{BITNET_INTERNAL, "poison"};
      return std::nullopt;
    };
    w.run();
    for (uint32_t i = 0; i < 6; ++i)
      EXPECT_EQ(all[i].got->choices[0].tokens, alone(w, some_tokens(30 + i, i), 20).tokens);
    for (const auto& c : culprit.got->choices) {
      EXPECT_EQ(c.ends, 1);
      EXPECT_EQ(c.last.what, event::kind::failed);
      EXPECT_EQ(c.last.why.message, "poison");
    }
    EXPECT_EQ(w.engine->counted().failed, 3U);
    w.expect_empty();
  }
}

TEST(trouble, a_lost_device_loses_no_request) {
  for (const bitnet_status status : {BITNET_DEVICE_LOST, BITNET_CONTEXT_POISONED, BITNET_TIMEOUT}) {
    options o;
    world* at = nullptr;
    o.on_loss = [&](const failure& why) -> result<std::unique_ptr<step_runner>> {
      EXPECT_EQ(why.message, "gone");
      return at->new_runner();
    };
    world w(small_limits(), o);
    at = &w;
    std::vector<world::given> all;
    for (uint32_t i = 0; i < 12; ++i) all.push_back(w.submit(some_tokens(80, i), 20, 1 + i % 2));
    for (int i = 0; i < 14; ++i) w.engine->tick();
    w.runner->fails = [=](auto) { return failure{status, "gone"}; };
    w.run();
    for (uint32_t i = 0; i < 12; ++i)
      for (uint32_t c = 0; c < 1 + i % 2; ++c)
        EXPECT_EQ(all[i].got->choices[c].tokens, alone(w, some_tokens(80, i), 20, c).tokens);
    EXPECT_EQ(w.engine->counted().runners_lost, 1U);
    EXPECT_GT(w.engine->counted().recomputed_tokens, 0U);
    w.expect_empty();
  }
}

TEST(trouble, without_another_device_each_gets_an_error_and_none_is_taken) {
  const struct {
    int n_others;  // that are lost as well
    const char* text;
    const char* why;
  } rows[] = {{0, "no other device", "there is none"},
              {100, "gone", "each of them is lost at its first step"}};
  for (const auto& row : rows) {
    int others = row.n_others;
    options o;
    o.max_running = 2;
    world* at = nullptr;
    const auto lose = [](auto) { return failure{BITNET_DEVICE_LOST, "gone"}; };
    o.on_loss = [&](const failure&) -> result<std::unique_ptr<step_runner>> {
      if (others-- == 0) return fail(BITNET_UNAVAILABLE, "no other device");
      auto next = at->new_runner();
      next->fails = lose;
      return next;
    };
    world w(small_limits(), o);
    at = &w;
    w.runner->fails = lose;
    std::vector<world::given> all;
    for (uint32_t i = 0; i < 5; ++i) all.push_back(w.submit(some_tokens(80, i), 20));
    w.run();
    EXPECT_GE(others, row.n_others - 4) << "it gives up: " << row.why;
    for (const auto& one : all) {
      ASSERT_TRUE(one.got->is_over());
      EXPECT_EQ(one.got->choices[0].last.what, event::kind::failed);
      EXPECT_NE(one.got->choices[0].last.why.message.find(row.text), std::string::npos);
    }
    const auto rejected = w.engine->submit(world::ask(some_tokens(5, 1), 3));
    ASSERT_FALSE(rejected);
    EXPECT_EQ(rejected.error().why, reason::no_runner);
    EXPECT_EQ(w.engine->counted().first_waiting, blocked_by::no_runner);

    w.engine->replace(w.new_runner());
    w.run();
    const auto one = w.submit(some_tokens(5, 1), 3);
    w.run();
    EXPECT_EQ(one.got->choices[0].tokens, alone(w, some_tokens(5, 1), 3).tokens);
    w.expect_empty();
  }
}

TEST(trouble, a_new_runner_goes_on_with_what_runs) {
  world w;
  std::vector<world::given> all;
  for (uint32_t i = 0; i < 12; ++i) all.push_back(w.submit(some_tokens(80, i), 20));
  for (int i = 0; i < 20; ++i) w.engine->tick();
  w.most.n_blocks = 9;
  w.engine->replace(w.new_runner());
  w.run();
  for (uint32_t i = 0; i < 12; ++i)
    EXPECT_EQ(all[i].got->choices[0].tokens, alone(w, some_tokens(80, i), 20).tokens);
  EXPECT_EQ(w.engine->counted().runners_replaced, 1U);
  EXPECT_EQ(w.engine->counted().blocks, 9U);
  w.expect_empty();
}

TEST(trouble, requests_too_long_for_a_smaller_runner_end) {
  world w;
  const auto begun = w.submit(some_tokens(100, 1), 200);
  for (int i = 0; i < 60; ++i) w.engine->tick();
  const std::size_t n = begun.got->choices[0].tokens.size();
  ASSERT_GT(n, 30U);
  const auto waits = w.submit(some_tokens(300, 2), 10, 2);
  const auto fits = w.submit(some_tokens(20, 3), 10);
  const auto reaches = w.submit(some_tokens(20, 4), 200);
  w.engine->tick();
  const ids want = alone(w, some_tokens(20, 4), 108).tokens;
  w.most.n_context = 128;
  w.most.n_blocks = 8;
  w.engine->replace(w.new_runner());
  w.run();
  EXPECT_EQ(begun.got->choices[0].last.stop_reason, BITNET_STOP_CONTEXT);
  EXPECT_GE(begun.got->choices[0].tokens.size(), n);
  for (const auto& c : waits.got->choices) {
    EXPECT_EQ(c.last.what, event::kind::failed);
    EXPECT_NE(c.last.why.message.find("128 tokens"), std::string::npos) << c.last.why.message;
  }
  EXPECT_EQ(fits.got->choices[0].tokens.size(), 10U);
  EXPECT_EQ(reaches.got->choices[0].last.stop_reason, BITNET_STOP_CONTEXT);
  EXPECT_EQ(reaches.got->choices[0].tokens, want) << "up to 128 tokens";
  w.expect_empty();
}

TEST(trouble, copies_that_fail_are_made_up_for) {
  for (const int times : {1, 2, 3}) {
    world w;
    int left = times;
    w.runner->fails_to_copy = [&]() -> std::optional<failure> {
      if (left-- <= 0) return std::nullopt;
      return failure{BITNET_INTERNAL, "no copy"};
    };
    const auto two = w.submit(some_tokens(100, 1), 10, 2);
    w.run();
    ASSERT_TRUE(two.got->is_over());
    for (uint32_t i = 0; i < 2; ++i)
      EXPECT_EQ(two.got->choices[i].tokens, alone(w, some_tokens(100, 1), 10, i).tokens) << times;
    w.expect_empty();
  }
}

TEST(trouble, a_model_with_states_finds_prefixes_where_one_was_kept) {
  step_limits most = small_limits();
  most.n_states = 12;
  world w(most);
  const ids prompt = some_tokens(150, 1);
  w.submit(prompt, 5);
  w.run();
  const auto again = w.submit(prompt, 5);
  w.run();
  EXPECT_EQ(again.got->choices[0].last.used.cached_tokens, 128U);
  EXPECT_EQ(again.got->choices[0].tokens, alone(w, prompt, 5).tokens);
  w.expect_empty();
}

TEST(trouble, states_are_kept_where_prompts_part) {
  step_limits most = small_limits();
  most.n_states = 12;
  world w(most);
  const uint64_t want[] = {0, 0, 256, 256};  // tokens found
  for (uint32_t i = 0; i < 4; ++i) {
    ids prompt = some_tokens(300, 1);
    const ids own = some_tokens(100, 10 + i);
    prompt.insert(prompt.end(), own.begin(), own.end());
    const auto one = w.submit(prompt, 5);
    w.run();
    EXPECT_EQ(one.got->choices[0].last.used.cached_tokens, want[i]) << i;
    EXPECT_EQ(one.got->choices[0].last.used.missed == kv::miss::state_missing, i == 1) << i;
    EXPECT_EQ(one.got->choices[0].tokens, alone(w, prompt, 5).tokens) << i;
  }
}

TEST(trouble, a_choice_may_end_before_the_others_begin) {
  const auto tree = generate::text_tokens(words());
  const auto guide = [&](const char* rules) {
    auto parsed = grammar::parse_gbnf(rules);
    EXPECT_TRUE(parsed) << parsed.error().message;
    return std::make_unique<grammar::guide>(*std::move(parsed), tree);
  };
  world w;
  request r = world::ask(some_tokens(100, 1), 10, 3);
  r.grammars.push_back(guide("root ::= \"\""));
  r.grammars.push_back(guide("root ::= [a-c] [a-c]"));
  r.grammars.push_back(guide("root ::= \"\""));
  const auto three = w.submit(std::move(r));
  w.run();
  for (const auto& c : three.got->choices) {
    EXPECT_EQ(c.ends, 1);
    EXPECT_EQ(c.last.stop_reason, BITNET_STOP_GRAMMAR);
  }
  EXPECT_EQ(three.got->choices[0].text, "");
  EXPECT_EQ(three.got->choices[1].text.size(), 2U);
  w.expect_empty();
}

TEST(trouble, stop_ends_everything_and_close_lets_it_go_on) {
  for (const bool stops : {false, true}) {
    world w;
    std::vector<world::given> all;
    for (uint32_t i = 0; i < 12; ++i) all.push_back(w.submit(some_tokens(10, i), 9));
    w.engine->tick();
    if (stops)
      w.engine->stop();
    else
      w.engine->close();
    w.run();
    for (const auto& one : all) {
      ASSERT_TRUE(one.got->is_over());
      EXPECT_EQ(one.got->choices[0].last.what == event::kind::failed, stops);
      EXPECT_EQ(one.got->choices[0].last.why.status == BITNET_CANCELLED, stops);
    }
    EXPECT_FALSE(w.engine->submit(world::ask(some_tokens(5, 1), 3)));
    w.expect_empty();
  }
}

TEST(trouble, requests_of_a_destroyed_scheduler_get_an_error) {
  world w;
  const auto running = w.submit(some_tokens(10, 1), 9);
  w.engine->tick();
  const auto waiting = w.submit(some_tokens(10, 2), 9);
  w.engine.reset();
  EXPECT_EQ(running.got->choices[0].last.why.status, BITNET_CANCELLED);
  EXPECT_EQ(waiting.got->choices[0].last.why.status, BITNET_CANCELLED);
}

TEST(trouble, a_sink_may_call_the_scheduler_back) {
  class caller final : public sink {
   public:
    bool offer(event&& e) override {
      if (e.what != event::kind::piece) ++ends;
      if (e.what == event::kind::piece && ++pieces == 3) engine->cancel(e.request);
      static_cast<void>(engine->counted());
      return true;
    }
    scheduler* engine = nullptr;
    int pieces = 0, ends = 0;
  };
  world w;
  request r = world::ask(some_tokens(10, 1), 50);
  const auto calls = std::make_shared<caller>();
  calls->engine = w.engine.get();
  r.events = calls;
  ASSERT_TRUE(w.engine->submit(std::move(r)));
  w.run();
  EXPECT_EQ(calls->pieces, 3);
  EXPECT_EQ(calls->ends, 1);
}

// A sink that another thread reads.
class counting final : public sink {
 public:
  bool offer(event&& e) override {
    if (e.what != event::kind::piece) {
      ++ends;
      return true;
    }
    if (pieces++ % 16 == 15 && !std::exchange(was_full_, true)) {
      --pieces;
      full = true;
      return false;
    }
    was_full_ = false;
    return true;
  }
  std::atomic<int> ends{0}, pieces{0};
  std::atomic<bool> full{false};

 private:
  bool was_full_ = false;
};

TEST(trouble, many_threads_submit_while_one_runs) {
  fake_clock clock;
  step_limits most = small_limits();
  auto made = scheduler::make(std::make_unique<fake_runner>(most, clock), words(), options{});
  ASSERT_TRUE(made);
  scheduler& engine = **made;
  std::jthread runs([&] { engine.run(); });
  {
    std::vector<std::jthread> clients;
    for (uint32_t c = 0; c < 4; ++c)
      clients.emplace_back([&, c] {
        for (uint32_t i = 0; i < 12; ++i) {
          request r = world::ask(some_tokens(10 + 30 * (i % 4), c * 100 + i), 30, 1 + i % 2);
          r.client = c;
          r.priority = static_cast<int32_t>(i % 3);
          const auto events = std::make_shared<counting>();
          r.events = events;
          const int n = static_cast<int>(r.n);
          const auto t = engine.submit(std::move(r));
          if (!t) continue;
          if (i % 5 == 4) engine.cancel(*t);
          while (events->ends < n) {
            if (events->full.exchange(false)) engine.ready(*t);
            static_cast<void>(engine.counted());
            std::this_thread::yield();
          }
          EXPECT_TRUE(i % 5 == 4 || events->pieces == 30 * n);
        }
      });
    for (int i = 0; i < 3; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));  // some requests run meanwhile
      engine.replace(std::make_unique<fake_runner>(most, clock));
    }
  }
  engine.close();
  runs.join();
  const statistics c = engine.counted();
  EXPECT_EQ(c.accepted, 48U);
  EXPECT_EQ(c.blocks_used, 0U);
  EXPECT_EQ(c.failed, 0U);
}

}  // namespace
}  // namespace bitnet::schedule
