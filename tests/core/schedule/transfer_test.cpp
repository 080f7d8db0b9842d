// Sequences that leave a scheduler and come into another one, while requests run.
#include "schedule/transfer.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <thread>

#include "small_world.hpp"

namespace bitnet::schedule {
namespace {

using namespace testing_support;  // NOLINT(google-build-using-namespace): the fake world

expected_choice alone(const world& w, const ids& prompt, int64_t max_tokens) {
  generate::options o;
  o.max_tokens = max_tokens;
  o.ignore_end = true;
  return testing_support::alone(prompt, o, 0, w.most);
}

// The answer of a call that waits for ticks, which are made here.
template <class Call>
auto answer_of(world& w, const Call& call) {
  auto got = std::async(std::launch::async, call);
  while (got.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) w.engine->tick();
  return got.get();
}
result<taken_sequence> take_out(world& w, const ids& tokens) {
  return answer_of(w, [&] { return w.engine->take_out(tokens); });
}
result<uint64_t> put_in(world& w, const kv::saved_sequence& s) {
  return answer_of(w, [&] { return w.engine->put_in(s); });
}

// Pieces of one block.
options in_pieces() {
  options o;
  o.piece_bytes = 1;
  return o;
}

// A world that has computed `prompt`, and what it gives of it.
result<taken_sequence> taken_of(const step_limits& most, const ids& prompt) {
  world w(most, in_pieces());
  w.submit(prompt, 3);
  w.run();
  auto out = take_out(w, prompt);
  w.expect_empty();
  return out;
}

// A request that keeps its blocks and its state until go_on().
world::given standing(world& w, int64_t max_tokens) {
  auto out = w.submit(some_tokens(20, 1), max_tokens);
  out.got->room = 3;
  w.run();
  return out;
}
void go_on(world& w, const world::given& one, int64_t max_tokens) {
  one.got->room = SIZE_MAX;
  w.engine->ready(one.id);
  w.run();
  EXPECT_EQ(one.got->choices[0].tokens, alone(w, some_tokens(20, 1), max_tokens).tokens);
}

void expect_known(world& w, const ids& prompt, uint64_t n_cached) {
  const auto one = w.submit(prompt, 20);
  w.run();
  const auto& got = one.got->choices[0];
  EXPECT_EQ(got.last.used.cached_tokens, n_cached);
  EXPECT_EQ(got.tokens, alone(w, prompt, 20).tokens);
  w.expect_empty();
}

// What a sequence has beside its blocks.
step_limits limits_of(const char* kind) {
  step_limits most = small_limits();
  if (std::string_view(kind) == "states") most.n_states = 3;
  if (std::string_view(kind) == "one state") most.n_states = 1;
  if (std::string_view(kind) == "window") most.window = 100;
  return most;
}

TEST(transfer, an_exported_prefix_is_known_after_import) {
  for (const char* kind : {"blocks", "states", "window"}) {
    SCOPED_TRACE(kind);
    for (const std::size_t n : {65U, 90U, 128U, 300U}) {
      SCOPED_TRACE(n);
      const step_limits most = limits_of(kind);
      const ids prompt = some_tokens(n, 4);
      const auto taken = taken_of(most, prompt);
      ASSERT_TRUE(taken) << taken.error().message;
      if (most.window == 0) {
        EXPECT_EQ(taken->it.tokens.size(), n / 64 * 64);
      }
      world w(most, in_pieces());
      const auto got = put_in(w, taken->it);
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_EQ(w.runner->n_moves, static_cast<int>(*got / 64 + (most.n_states != 0 ? 1 : 0)));
      EXPECT_EQ(*got, taken->it.tokens.size());
      w.expect_empty();
      ids longer = prompt;
      longer.push_back(9);
      expect_known(w, longer, taken->it.tokens.size());
    }
  }
}

// No other state is free: what is taken out is moved by the one that is kept behind it.
TEST(transfer, a_state_that_is_taken_out_stays_where_it_is) {
  step_limits most = small_limits();
  most.n_states = 2;
  const ids prompt = some_tokens(130, 4);
  world w(most);
  w.submit(prompt, 1);
  w.run();
  const auto other = standing(w, 30);
  ASSERT_EQ(w.engine->counted().states_used, 1U);
  const auto taken = take_out(w, prompt);
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_EQ(taken->it.tokens.size(), 128U);
  go_on(w, other, 30);
  expect_known(w, prompt, 128);
}

TEST(transfer, only_whole_blocks_that_are_known_go) {
  world w;
  const auto short_one = w.submit(some_tokens(63, 1), 1);
  w.run();
  const auto none = take_out(w, some_tokens(63, 1));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().status, BITNET_NOT_FOUND);
  EXPECT_NE(none.error().message.find("no whole block of 64 tokens"), std::string::npos);
  const auto foreign = take_out(w, some_tokens(200, 7));
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().status, BITNET_NOT_FOUND);
  w.submit(some_tokens(130, 2), 1);
  w.run();
  ids longer = some_tokens(130, 2);
  for (int i = 0; i < 100; ++i) longer.push_back(3);
  const auto part = take_out(w, longer);
  ASSERT_TRUE(part) << part.error().message;
  EXPECT_EQ(part->it.tokens, ids(longer.begin(), longer.begin() + 128));
  w.expect_empty();
}

TEST(transfer, running_requests_continue_during_a_transfer) {
  step_limits most = small_limits();
  const ids prompt = some_tokens(300, 4);
  const auto taken = taken_of(most, prompt);
  ASSERT_TRUE(taken);
  world w(most, in_pieces());
  const auto running = w.submit(some_tokens(20, 1), 200);
  w.engine->tick();
  ASSERT_TRUE(put_in(w, taken->it));
  ASSERT_TRUE(take_out(w, prompt));
  w.run();
  EXPECT_EQ(running.got->choices[0].tokens, alone(w, some_tokens(20, 1), 200).tokens);
  expect_known(w, prompt, 256);
}

TEST(transfer, as_much_comes_in_as_there_is_room_for) {
  const ids prompt = some_tokens(300, 4);
  const auto taken = taken_of(small_limits(), prompt);
  ASSERT_TRUE(taken);
  step_limits small = small_limits();
  small.n_blocks = 5;
  world w(small);
  const auto other = standing(w, 100);  // has reserved two
  const auto some = put_in(w, taken->it);
  ASSERT_TRUE(some) << some.error().message;
  EXPECT_EQ(*some, 3 * 64U);
  go_on(w, other, 100);
}

TEST(transfer, without_room_it_is_busy) {
  const ids prompt = some_tokens(300, 4);
  const auto taken = taken_of(limits_of("states"), prompt);
  ASSERT_TRUE(taken);
  step_limits small = limits_of("states");
  small.n_blocks = 5;
  world w(small);
  const auto first = standing(w, 100);
  const auto none = put_in(w, taken->it);  // blocks without the state behind them are of no use
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().status, BITNET_BUSY) << none.error().message;
  world other(limits_of("one state"));
  const auto second = standing(other, 100);
  const auto no_state = put_in(other, taken->it);
  ASSERT_FALSE(no_state);
  EXPECT_EQ(no_state.error().status, BITNET_BUSY) << no_state.error().message;
  go_on(w, first, 100);
  go_on(other, second, 100);
  w.expect_empty();
  other.expect_empty();
}

TEST(transfer, another_form_is_rejected) {
  const auto taken = taken_of(small_limits(), some_tokens(130, 4));
  ASSERT_TRUE(taken);
  world w;
  w.runner->its_form.facts[0].value = "another";
  const auto got = put_in(w, taken->it);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().status, BITNET_UNSUPPORTED);
  EXPECT_NE(got.error().message.find("expected a sequence whose device is \"another\", found "
                                     "\"fake\": use the fake one"),
            std::string::npos)
      << got.error().message;
  w.expect_empty();
}

TEST(transfer, a_device_that_is_lost_begins_it_anew_on_the_next) {
  const ids prompt = some_tokens(300, 4);
  const auto taken = taken_of(small_limits(), prompt);
  ASSERT_TRUE(taken);
  world* self = nullptr;
  options o;
  o.on_loss = [&](const failure&) -> result<std::unique_ptr<step_runner>> {
    return self->new_runner();
  };
  world w(small_limits(), o);
  self = &w;
  w.runner->fails_to_move = [] { return failure{BITNET_DEVICE_LOST, "gone"}; };
  const auto got = put_in(w, taken->it);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(w.engine->counted().runners_lost, 1U);
  expect_known(w, prompt, 256);
  w.runner->fails_to_move = [] { return failure{BITNET_DEVICE_LOST, "gone"}; };
  const auto none = take_out(w, prompt);  // the next device knows nothing
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().status, BITNET_NOT_FOUND);
}

TEST(transfer, a_failed_import_leaves_no_blocks) {
  const ids prompt = some_tokens(300, 4);
  const auto taken = taken_of(small_limits(), prompt);
  ASSERT_TRUE(taken);
  world w;
  w.runner->fails_to_move = [] { return failure{BITNET_INTERNAL, "it cannot"}; };
  const auto got = put_in(w, taken->it);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().message, "it cannot");
  w.runner->fails_to_move = {};
  w.expect_empty();
  expect_known(w, prompt, 0);
}

TEST(transfer, a_scheduler_that_stops_ends_it) {
  const auto taken = taken_of(small_limits(), some_tokens(300, 4));
  ASSERT_TRUE(taken);
  world w;
  auto got = std::async(std::launch::async, [&] { return w.engine->put_in(taken->it); });
  // The first tick with something to do begins the transfer.
  for (int i = 0; i < 60'000 && !w.engine->tick(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  w.engine->stop();
  w.engine->tick();
  const auto ended = got.get();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().status, BITNET_CANCELLED) << ended.error().message;
  EXPECT_FALSE(w.engine->take_out(some_tokens(64, 1)));
}

}  // namespace
}  // namespace bitnet::schedule
