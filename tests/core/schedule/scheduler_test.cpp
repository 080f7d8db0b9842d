// What a scheduler does with its requests: order, bounds, ends.
#include "schedule/scheduler.hpp"

#include <gtest/gtest.h>

#include "small_world.hpp"

namespace bitnet::schedule {
namespace {

using namespace testing_support;  // NOLINT(google-build-using-namespace): the fake world
using std::chrono::nanoseconds;
using reason = rejection::reason;

void expect_alone(const world& w, const collector& got, const ids& prompt, int64_t max_tokens,
                  uint32_t choice = 0) {
  generate::options o;
  o.max_tokens = max_tokens;
  o.ignore_end = true;
  const auto want = alone(prompt, o, choice, w.most);
  EXPECT_EQ(got.choices[choice].tokens, want.tokens);
  EXPECT_EQ(got.choices[choice].text, want.text);
  EXPECT_EQ(got.choices[choice].ends, 1);
  EXPECT_EQ(got.choices[choice].last.stop_reason, want.stop_reason);
}

uint64_t n_computed(const fake_runner& r) {
  uint64_t n = 0;
  for (const auto& step : r.notes)
    for (const auto& [first, tokens] : step.parts) n += tokens;
  return n;
}

TEST(scheduler, each_of_many_gives_what_it_gives_alone) {
  world w;
  std::vector<world::given> all;
  for (uint32_t i = 0; i < 20; ++i) all.push_back(w.submit(some_tokens(5 + 20 * i, i), 10 + i));
  w.run();
  for (uint32_t i = 0; i < 20; ++i)
    expect_alone(w, *all[i].got, some_tokens(5 + 20 * i, i), 10 + i);
  w.expect_empty();
}

TEST(scheduler, an_end_says_what_was_used) {
  world w;
  const auto first = w.submit(some_tokens(150, 1), 5);
  w.run();
  const auto second = w.submit(some_tokens(150, 1), 3);
  w.run();
  const event& a = first.got->choices[0].last;
  EXPECT_EQ(a.what, event::kind::end);
  EXPECT_EQ(a.request, first.id);
  EXPECT_EQ(a.stop_reason, BITNET_STOP_LENGTH);
  EXPECT_EQ(a.used.prompt_tokens, 150U);
  EXPECT_EQ(a.used.cached_tokens, 0U);
  EXPECT_EQ(a.used.missed, kv::miss::nothing_known);
  EXPECT_EQ(a.used.generated_tokens, 5U);
  EXPECT_EQ(a.used.queue_ns, 0U);
  EXPECT_GE(a.used.prompt_ns, 3000U) << "3 steps of 64 tokens at most";
  EXPECT_EQ(a.used.generate_ns, 4000U) << "the first token comes with the prompt";
  const event& b = second.got->choices[0].last;
  EXPECT_EQ(b.used.cached_tokens, 128U) << "two whole blocks";
  EXPECT_EQ(b.used.missed, kv::miss::none);
  const statistics c = w.engine->counted();
  EXPECT_EQ(c.prefix_hits, a.used.cached_tokens + b.used.cached_tokens);
  EXPECT_EQ(c.prefix_queries, 300U);
  EXPECT_EQ(c.prompt_tokens, 300U);
  EXPECT_EQ(c.generated_tokens, 8U);
  EXPECT_EQ(c.ended[BITNET_STOP_LENGTH], 2U);
  EXPECT_EQ(c.misses[static_cast<std::size_t>(kv::miss::none)], 1U);
  EXPECT_EQ(c.steps, 3U + 4U + 1U + 2U);
}

TEST(scheduler, an_end_is_counted_when_it_comes) {
  world w;
  std::vector<statistics> seen;
  const auto look = [&] { seen.push_back(w.engine->counted()); };
  const auto whole = w.submit(some_tokens(150, 1), 5);
  whole.got->at_end = look;
  w.run();
  const auto cancelled = w.submit(some_tokens(20, 2), 50);
  cancelled.got->at_end = look;
  for (int i = 0; i < 4; ++i) w.engine->tick();
  w.engine->cancel(cancelled.id);
  w.run();
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].prompt_tokens, 150U);
  EXPECT_EQ(seen[0].generated_tokens, 5U);
  EXPECT_EQ(seen[0].ended[BITNET_STOP_LENGTH], 1U);
  EXPECT_EQ(seen[1].generated_tokens, 5U + cancelled.got->choices[0].tokens.size());
  EXPECT_EQ(seen[1].ended[BITNET_STOP_CANCELLED], 1U);
  for (const statistics& one : seen) {
    EXPECT_EQ(one.running, 0U);
    EXPECT_EQ(one.blocks_used, 0U);
  }
}

TEST(scheduler, decodes_are_in_every_step_and_prompts_leave_them_their_time) {
  step_limits most = small_limits();
  most.max_tokens = 512;
  most.n_context = 2048;
  world w(most);
  w.runner->base = nanoseconds(1000);
  w.runner->per_token = nanoseconds(20);
  for (uint32_t i = 0; i < 4; ++i) w.submit(some_tokens(3, i), 200);
  for (int i = 0; i < 8; ++i) w.engine->tick();
  w.runner->keeps_notes = true;
  const auto prompt = w.submit(some_tokens(1500, 9), 1);
  int steps = 0;
  const nanoseconds alone_ns(1000 + 1500 * 20);
  // A step takes 20 ns for each token of a sequence behind its first, so decodes take 1000. What
  // a token of the prompt takes is known from 8 of them first, which is a tenth too little.
  const nanoseconds three_steps_of_decodes(3 * 1000), a_tenth = three_steps_of_decodes / 10;
  nanoseconds took{};
  while (!prompt.got->is_over()) {
    const auto before = w.clock.now;
    ASSERT_TRUE(w.engine->tick());
    ++steps;
    took += w.clock.now - before;
    EXPECT_LE(w.clock.now - before, three_steps_of_decodes + a_tenth) << "step " << steps;
    uint32_t decodes = 0;
    for (const auto& [first, n] : w.runner->notes.back().parts) decodes += n == 1 ? 1 : 0;
    ASSERT_GE(decodes, 4U) << "step " << steps;
  }
  EXPECT_LE(took, alone_ns * 8 / 5) << "and the prompt is not kept out by the decodes";
}

TEST(scheduler, a_short_prompt_passes_the_long_one_of_another_client_and_both_end) {
  step_limits most = small_limits();
  most.n_context = 4096;
  most.n_blocks = 200;
  world w(most);
  request long_one = world::ask(some_tokens(4000, 1), 1);
  long_one.client = 1;
  const auto slow = w.submit(std::move(long_one));
  for (int i = 0; i < 3; ++i) w.engine->tick();
  int ticks = 0;
  for (uint32_t i = 0; i < 100; ++i) {  // one after the other, each a client of its own
    request r = world::ask(some_tokens(50, 10 + i), 1);
    r.client = 10 + i;
    const auto quick = w.submit(std::move(r));
    int waited = 0;
    while (!quick.got->is_over()) {
      ASSERT_LT(++waited, 6);
      w.engine->tick();
      ++ticks;
    }
  }
  w.run();
  EXPECT_TRUE(slow.got->is_over());
  EXPECT_LE(ticks, 600);
}

TEST(scheduler, the_choices_share_one_prompt) {
  world w;
  w.runner->keeps_notes = true;
  const ids prompt = some_tokens(100, 1);
  const auto four = w.submit(prompt, 6, 4);
  w.run();
  for (uint32_t i = 0; i < 4; ++i) expect_alone(w, *four.got, prompt, 6, i);
  EXPECT_NE(four.got->choices[0].tokens, four.got->choices[1].tokens) << "each its own seed";
  EXPECT_EQ(n_computed(*w.runner), 100U + 4 * 5);
  EXPECT_EQ(w.engine->counted().copied_blocks, 3U) << "of the block that the prompt half fills";
  w.expect_empty();
}

TEST(scheduler, choices_take_their_own_seeds) {
  world w;
  request r = world::ask(some_tokens(30, 1), 8, 2);
  r.seeds = {5, 5};
  const auto two = w.submit(std::move(r));
  w.run();
  EXPECT_EQ(two.got->choices[0].tokens, two.got->choices[1].tokens);
}

TEST(scheduler, more_choices_than_there_is_room_for_take_turns) {
  step_limits most = small_limits();
  most.max_sequences = 2;
  most.n_blocks = 5;
  world w(most);
  const ids prompt = some_tokens(100, 1);
  const auto many = w.submit(prompt, 60, 7);
  w.run();
  for (uint32_t i = 0; i < 7; ++i) expect_alone(w, *many.got, prompt, 60, i);
  w.expect_empty();
}

TEST(scheduler, two_clients_get_as_much_whatever_they_ask) {
  options o;
  o.max_running = 1;
  world w(small_limits(), o);
  std::vector<world::given> crowd;
  for (uint32_t i = 0; i < 20; ++i) {
    request r = world::ask(some_tokens(20, i), 20);
    r.client = 1;
    crowd.push_back(w.submit(std::move(r)));
  }
  w.engine->tick();
  std::vector<world::given> few;
  for (uint32_t i = 0; i < 4; ++i) {
    request r = world::ask(some_tokens(20, 50 + i), 20);
    r.client = 2;
    few.push_back(w.submit(std::move(r)));
  }
  while (!few.back().got->is_over()) w.engine->tick();
  const auto is_over = [](const world::given& g) { return g.got->is_over(); };
  EXPECT_LE(std::ranges::count_if(crowd, is_over), 5) << "they take turns";
  EXPECT_GE(std::ranges::count_if(crowd, is_over), 3);
}

TEST(scheduler, nothing_waits_for_ever) {
  options o;
  o.ageing = std::chrono::microseconds(20);
  o.max_running = 1;
  world w(small_limits(), o);
  std::vector<world::given> urgent;
  const auto ask_urgent = [&] {
    request r = world::ask(some_tokens(20, static_cast<uint32_t>(urgent.size())), 5);
    r.priority = 10;
    urgent.push_back(w.submit(std::move(r)));
  };
  ask_urgent();
  const auto low = w.submit(some_tokens(20, 999), 30);
  int ended = 0;
  while (!low.got->is_over() && ended < 1000) {
    if (urgent.back().got->is_over()) {
      ++ended;
      ask_urgent();
      ask_urgent();
    }
    w.engine->tick();
  }
  EXPECT_TRUE(low.got->is_over());
  EXPECT_GT(ended, 10) << "but not before it was old";
  EXPECT_EQ(w.engine->counted().preemptions, 0U) << "nor is it preempted by them then";
  expect_alone(w, *low.got, some_tokens(20, 999), 30);
}

TEST(scheduler, the_urgent_take_the_place_of_others_which_go_on_later) {
  const struct {
    uint32_t max_running, n_blocks;
    const char* why;
  } rows[] = {{2, 64, "sequences"}, {0, 4, "blocks"}};
  for (const auto& row : rows) {
    step_limits most = small_limits();
    most.n_blocks = row.n_blocks;
    options o;
    o.max_running = row.max_running;
    world w(most, o);
    const auto first = w.submit(some_tokens(70, 1), 50);
    const auto second = w.submit(some_tokens(70, 2), 50);
    for (int i = 0; i < 20; ++i) w.engine->tick();
    ASSERT_EQ(w.engine->counted().running, 2U) << row.why;
    request r = world::ask(some_tokens(70, 3), 20);
    r.priority = 1;
    const auto urgent = w.submit(std::move(r));
    while (!urgent.got->is_over()) ASSERT_TRUE(w.engine->tick());
    EXPECT_FALSE(first.got->is_over()) << row.why;
    EXPECT_FALSE(second.got->is_over()) << row.why;
    EXPECT_EQ(w.engine->counted().preemptions, 1U) << row.why;
    w.run();
    expect_alone(w, *first.got, some_tokens(70, 1), 50);
    expect_alone(w, *second.got, some_tokens(70, 2), 50);
    expect_alone(w, *urgent.got, some_tokens(70, 3), 20);
    const usage& of_second = second.got->choices[0].last.used;
    EXPECT_EQ(of_second.preemptions, 1U) << "the one that was admitted last";
    EXPECT_GT(of_second.queue_ns, 0U);
    if (row.n_blocks > 8) {
      EXPECT_LT(of_second.recomputed_tokens, 64U) << "its whole blocks were kept";
    }
    EXPECT_EQ(of_second.recomputed_tokens, w.engine->counted().recomputed_tokens);
    w.expect_empty();
  }
}

TEST(scheduler, no_request_is_preempted_for_the_equal_or_in_vain) {
  step_limits most = small_limits();
  most.n_blocks = 8;
  world w(most);
  request low = world::ask(some_tokens(60, 1), 60);  // 2 blocks
  request high = world::ask(some_tokens(300, 2), 60);
  high.priority = 2;  // 6 blocks
  w.submit(std::move(low));
  w.submit(std::move(high));
  w.engine->tick();
  ASSERT_EQ(w.engine->counted().running, 2U);
  for (const int32_t priority : {0, 1}) {
    request r = world::ask(some_tokens(200, 3), 60);  // 5 blocks: more than the low one has
    r.priority = priority;
    w.submit(std::move(r));
    w.engine->tick();
  }
  EXPECT_EQ(w.engine->counted().preemptions, 0U);
  EXPECT_EQ(w.engine->counted().first_waiting, blocked_by::blocks);
  EXPECT_EQ(w.engine->counted().waiting_new, 2U);
}

TEST(scheduler, cancel_takes_effect_within_one_step_wherever_the_request_is) {
  const struct {
    int ticks;  // before
    std::size_t tokens;
    const char* why;
  } rows[] = {{0, 0, "before the first tick"},
              {1, 0, "in the prompt"},
              {5, 1, "behind the first token"},
              {9, 5, "in decoding"}};
  for (const auto& row : rows) {
    world w;
    w.runner->keeps_notes = true;
    const auto one = w.submit(some_tokens(300, 1), 100);
    for (int i = 0; i < row.ticks; ++i) w.engine->tick();
    w.engine->cancel(one.id);
    const std::size_t steps = w.runner->notes.size();
    w.run();
    EXPECT_EQ(w.runner->notes.size(), steps) << row.why;
    ASSERT_EQ(one.got->choices[0].ends, 1) << row.why;
    EXPECT_EQ(one.got->choices[0].last.what, event::kind::end) << row.why;
    EXPECT_EQ(one.got->choices[0].last.stop_reason, BITNET_STOP_CANCELLED) << row.why;
    EXPECT_EQ(one.got->choices[0].tokens.size(), row.tokens) << row.why;
    w.expect_empty();
    w.engine->cancel(one.id);
    w.engine->cancel(12345);
    w.run();
    const auto again = w.submit(some_tokens(300, 1), 1);
    w.run();
    EXPECT_EQ(again.got->choices[0].last.used.cached_tokens, std::min(row.ticks, 4) * 64U)
        << "what was computed of the prompt stays known: " << row.why;
  }
}

TEST(scheduler, a_request_in_the_queue_is_cancelled_as_well) {
  options o;
  o.max_running = 1;
  world w(small_limits(), o);
  const auto first = w.submit(some_tokens(10, 1), 20);
  const auto second = w.submit(some_tokens(10, 2), 20, 3);
  w.engine->tick();
  EXPECT_EQ(w.engine->counted().waiting_new, 1U);
  EXPECT_EQ(w.engine->counted().waiting_tokens, 10U);
  EXPECT_EQ(w.engine->counted().first_waiting, blocked_by::sequences);
  w.engine->cancel(second.id);
  w.engine->tick();
  EXPECT_TRUE(second.got->is_over()) << "all three choices";
  EXPECT_FALSE(first.got->is_over());
  EXPECT_EQ(w.engine->counted().waiting_tokens, 0U);
}

TEST(scheduler, deadlines_hold_in_the_queue_and_in_a_step) {
  options o;
  o.max_running = 1;
  world w(small_limits(), o);
  request running = world::ask(some_tokens(10, 1), 100);
  running.deadline = w.clock.now + nanoseconds(10000);
  request waiting = world::ask(some_tokens(10, 2), 100, 2);
  waiting.deadline = w.clock.now + nanoseconds(5000);
  const auto first = w.submit(std::move(running));
  const auto second = w.submit(std::move(waiting));
  for (int i = 0; i < 6; ++i) w.engine->tick();
  EXPECT_TRUE(second.got->is_over());
  EXPECT_FALSE(first.got->is_over());
  w.run();
  for (const auto& c : {first.got->choices[0], second.got->choices[0], second.got->choices[1]}) {
    EXPECT_EQ(c.last.what, event::kind::failed);
    EXPECT_EQ(c.last.why.status, BITNET_TIMEOUT);
    EXPECT_NE(c.last.why.message.find("deadline"), std::string::npos);
  }
  EXPECT_EQ(first.got->choices[0].tokens.size(), 10U) << "one each 1000 ns";
  EXPECT_EQ(w.engine->counted().expired, 3U);
  w.expect_empty();
}

TEST(scheduler, rejections_are_counted_by_their_reason) {
  options o;
  o.max_waiting = 2;
  o.max_waiting_tokens = 1000;
  o.max_running = 1;
  step_limits most = small_limits();
  most.n_blocks = 7;
  world w(most, o);
  const auto rejected = [&](request r) {
    const auto t = w.engine->submit(std::move(r));
    EXPECT_FALSE(t);
    return t ? reason::invalid : t.error().why;
  };
  EXPECT_EQ(rejected(world::ask({}, 1)), reason::invalid);
  EXPECT_EQ(rejected(world::ask(some_tokens(512, 1), 1)), reason::too_long);
  EXPECT_EQ(rejected(world::ask(some_tokens(10, 1), -1)), reason::too_large);
  request odd = world::ask(some_tokens(10, 1), 1);
  odd.generation.logprobs = true;
  odd.generation.n_logprobs = 21;
  EXPECT_EQ(rejected(std::move(odd)), reason::invalid);
  w.submit(some_tokens(300, 1), 10);
  w.submit(some_tokens(300, 2), 10);
  EXPECT_EQ(rejected(world::ask(some_tokens(10, 3), 1)), reason::requests_waiting);
  w.engine->tick();
  EXPECT_EQ(w.engine->counted().waiting_new, 1U) << "one runs now";
  w.submit(some_tokens(300, 3), 10);
  w.run();
  EXPECT_EQ(w.engine->counted().rejected[static_cast<std::size_t>(reason::invalid)], 2U);
  EXPECT_EQ(w.engine->counted().rejected[static_cast<std::size_t>(reason::requests_waiting)], 1U);
  w.engine->close();
  EXPECT_EQ(rejected(world::ask(some_tokens(10, 3), 1)), reason::closed);
  EXPECT_EQ(w.engine->counted().accepted, 3U);
}

TEST(scheduler, log_probabilities_come_with_each_token) {
  world w;
  w.runner->keeps_notes = true;
  request r = world::ask(some_tokens(10, 1), 4);
  r.generation.logprobs = true;
  r.generation.n_logprobs = 3;
  const auto with = w.submit(std::move(r));
  w.run();
  ASSERT_EQ(with.got->choices[0].logprobs.size(), 4U);
  for (const auto& one : with.got->choices[0].logprobs) {
    EXPECT_EQ(one.largest.size(), 3U);
    EXPECT_LE(one.chosen, 0);
  }
  for (const auto& step : w.runner->notes) EXPECT_EQ(step.top_logits, 0U) << "all logits";
  w.runner->notes.clear();
  request plain = world::ask(some_tokens(10, 2), 4);
  plain.generation.ignore_end = false;
  plain.generation.sampling.temperature = 0;
  plain.generation.sampling.repeat_penalty = 1;
  w.submit(std::move(plain));
  w.run();
  for (const auto& step : w.runner->notes) EXPECT_EQ(step.top_logits, 1U) << "the largest";
}

}  // namespace
}  // namespace bitnet::schedule
