// What a report shows of each sequence: judged by what the fake device was given and by what came.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "small_world.hpp"

namespace bitnet::schedule {
namespace {

using namespace testing_support;  // NOLINT(google-build-using-namespace): the fake world

const sequence_row* row_of(const statistics& s, ticket of, uint32_t choice = 0) {
  const auto at = std::ranges::find_if(
      s.sequences, [&](const sequence_row& r) { return r.request == of && r.choice == choice; });
  return at != s.sequences.end() ? &*at : nullptr;
}

std::size_t count_of(const statistics& s, activity what) {
  return static_cast<std::size_t>(std::ranges::count(s.sequences, what, &sequence_row::does));
}

TEST(listing, a_sequence_is_seen_from_its_first_step_to_its_end) {
  world w;
  EXPECT_TRUE(w.engine->counted().sequences.empty());
  w.submit(some_tokens(150, 1), 5);
  w.run();  // two blocks of it are known now
  const auto one = w.submit(some_tokens(150, 1), 5);
  std::vector<statistics> seen;
  // The device sees what is known while it computes.
  w.runner->fails = [&](auto) {
    seen.push_back(w.engine->counted());
    return std::nullopt;
  };
  statistics at_end;
  one.got->at_end = [&] { at_end = w.engine->counted(); };
  w.run();
  // 22 tokens of the prompt, then four tokens.
  ASSERT_EQ(seen.size(), 5U);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    SCOPED_TRACE(i);
    const sequence_row* const row = row_of(seen[i], one.id);
    ASSERT_NE(row, nullptr);
    EXPECT_EQ(row->slot, 0U);
    EXPECT_EQ(row->does, i == 0 ? activity::prompt : activity::decoding);
    EXPECT_EQ(row->prompt_tokens, 150U);
    EXPECT_EQ(row->known_tokens, 128U);
    EXPECT_EQ(row->computed_tokens, i == 0 ? 0U : 22U);
    EXPECT_EQ(row->generated_tokens, i);
    EXPECT_EQ(row->remaining_tokens, 5 - i);
    EXPECT_FALSE(row->speculates);
  }
  EXPECT_TRUE(at_end.sequences.empty()) << "its end comes behind its row";
}

TEST(listing, a_long_prompt_is_seen_to_grow) {
  world w;
  const auto one = w.submit(some_tokens(200, 1), -1);
  std::vector<uint64_t> computed;
  for (int i = 0; i < 4; ++i) {
    w.engine->tick();
    const statistics now = w.engine->counted();
    const sequence_row* const row = row_of(now, one.id);
    ASSERT_NE(row, nullptr);
    computed.push_back(row->computed_tokens);
    EXPECT_EQ(row->does, row->computed_tokens < 200 ? activity::prompt : activity::decoding);
    EXPECT_EQ(row->remaining_tokens, 512 - 200 - row->generated_tokens) << "the context ends it";
  }
  EXPECT_EQ(computed, (std::vector<uint64_t>{64, 128, 192, 200}));
}

TEST(listing, slots_are_kept_and_the_lowest_that_is_free_is_given) {
  options o;
  o.max_running = 3;
  world w(small_limits(), o);
  std::vector<world::given> all;
  for (const int64_t n : {30, 5, 30, 30, 30}) all.push_back(w.submit(some_tokens(4, 7), n));
  std::map<ticket, std::set<uint32_t>> slots_of;
  for (int i = 0; i < 12; ++i) {
    w.engine->tick();
    const statistics now = w.engine->counted();
    std::set<uint32_t> taken;
    for (const sequence_row& row : now.sequences) {
      EXPECT_EQ(row.slot == no_slot, row.does == activity::waiting);
      if (row.slot == no_slot) continue;
      EXPECT_LT(row.slot, 3U);
      EXPECT_TRUE(taken.insert(row.slot).second) << "two have one slot";
      slots_of[row.request].insert(row.slot);
    }
  }
  EXPECT_EQ(slots_of[all[0].id], std::set<uint32_t>{0});
  EXPECT_EQ(slots_of[all[1].id], std::set<uint32_t>{1});
  EXPECT_EQ(slots_of[all[2].id], std::set<uint32_t>{2});
  EXPECT_EQ(slots_of[all[3].id], std::set<uint32_t>{1}) << "the one that became free";
  EXPECT_TRUE(slots_of[all[4].id].empty()) << "it waits";
  w.run();
  EXPECT_TRUE(w.engine->counted().sequences.empty());
}

TEST(listing, choices_are_seen_once_they_begin) {
  options o;
  o.max_running = 2;
  world w(small_limits(), o);
  const auto one = w.submit(some_tokens(20, 1), 30, 3);
  statistics first;
  w.runner->fails = [&](auto) {
    if (first.sequences.empty()) first = w.engine->counted();
    return std::nullopt;
  };
  w.engine->tick();
  ASSERT_EQ(first.sequences.size(), 1U) << "its choices have not begun";
  const statistics now = w.engine->counted();
  ASSERT_EQ(now.sequences.size(), 3U);
  EXPECT_EQ(count_of(now, activity::decoding), 2U);
  EXPECT_EQ(count_of(now, activity::waiting), 1U) << "of a choice that has no place";
  for (uint32_t c = 0; c < 3; ++c) {
    ASSERT_NE(row_of(now, one.id, c), nullptr);
    EXPECT_EQ(row_of(now, one.id, c)->generated_tokens, 1U);
    EXPECT_EQ(row_of(now, one.id, c)->remaining_tokens, 29U);
  }
  w.run();
}

TEST(listing, a_full_sink_is_seen) {
  world w;
  const auto one = w.submit(some_tokens(20, 1), 30);
  one.got->room = 3;
  for (int i = 0; i < 6; ++i) w.engine->tick();
  statistics now = w.engine->counted();
  ASSERT_NE(row_of(now, one.id), nullptr);
  EXPECT_EQ(row_of(now, one.id)->does, activity::paused);
  one.got->room = SIZE_MAX;
  w.engine->ready(one.id);
  w.engine->tick();
  now = w.engine->counted();
  ASSERT_NE(row_of(now, one.id), nullptr);
  EXPECT_EQ(row_of(now, one.id)->does, activity::decoding);
  w.engine->cancel(one.id);
  w.run();
  EXPECT_TRUE(w.engine->counted().sequences.empty());
}

// Those that a new runner takes over have a slot below its bound.
TEST(listing, another_runner_gives_slots_anew) {
  world w;
  for (uint32_t i = 0; i < 8; ++i) w.submit(some_tokens(10, i), 40);
  for (int i = 0; i < 5; ++i) w.engine->tick();
  EXPECT_EQ(w.engine->counted().running, 8U);
  w.most.max_sequences = w.most.max_outputs = 3;
  w.engine->replace(w.new_runner());
  w.engine->tick();
  const statistics now = w.engine->counted();
  ASSERT_EQ(now.sequences.size(), 8U);
  std::set<uint32_t> slots;
  for (const sequence_row& row : now.sequences)
    if (row.slot != no_slot) slots.insert(row.slot);
  EXPECT_EQ(slots, (std::set<uint32_t>{0, 1, 2}));
  w.run();
  w.expect_empty();
}

TEST(listing, rows_are_bounded) {
  options o;
  o.max_running = 2;
  world w(small_limits(), o);
  for (uint32_t i = 0; i < 300; ++i) w.submit(some_tokens(4, i), 3);
  w.engine->tick();
  const statistics now = w.engine->counted();
  EXPECT_EQ(now.running, 2U);
  EXPECT_EQ(now.waiting_new, 298U);
  EXPECT_EQ(now.sequences.size(), 2 + most_waiting_rows);
  w.run();
}

// For ThreadSanitizer as well: rows are read while others are written.
TEST(listing, rows_are_whole_while_steps_run) {
  options o;
  o.max_running = 4;
  world w(small_limits(), o);
  for (uint32_t i = 0; i < 60; ++i) w.submit(some_tokens(30, i), 40);
  std::jthread runs([&] { w.engine->run(); });
  for (statistics now; now.ended[BITNET_STOP_LENGTH] < 60; now = w.engine->counted())
    for (const sequence_row& row : now.sequences) {
      ASSERT_TRUE(row.slot == no_slot || row.slot < 4);
      ASSERT_EQ(row.prompt_tokens, 30U);
      ASSERT_EQ(row.generated_tokens + row.remaining_tokens, 40U);
      ASSERT_GE(row.request, 1U);
    }
  w.engine->stop();
}

}  // namespace
}  // namespace bitnet::schedule
