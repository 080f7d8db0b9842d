#include "kv/block_pool.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "../counted_heap.hpp"
#include "../growth.hpp"
#include "test_secret.hpp"

namespace bitnet::kv {
namespace {

using tokens = std::vector<int32_t>;
using testing_support::heap_use;

const hash_secret secret = test_secret(7);

tokens prompt_of(std::size_t n, int32_t first = 0) {
  tokens out(n);
  std::iota(out.begin(), out.end(), first);
  return out;
}

// Two tokens in a block, unless a test says otherwise.
shape small(uint32_t n_blocks, uint32_t n_states = 0) {
  return {.n_blocks = n_blocks, .n_states = n_states, .tokens_per_block = 2};
}

// Runs `prompt` with `more` tokens of room, and leaves it in `t`.
block_pool::found begin(block_pool& pool, table& t, const tokens& prompt, uint64_t more = 0) {
  copy_list copies;
  const auto found = pool.match(t, prompt, pool.blocks_of(prompt.size() + more), copies);
  if (!found) {
    ADD_FAILURE() << "no room";
    return {};
  }
  EXPECT_TRUE(pool.extend(t, prompt.size() - found->tokens, copies));
  pool.publish(t, prompt);
  return *found;
}

block_pool::found run(block_pool& pool, const tokens& prompt) {
  table t;
  const auto found = begin(pool, t, prompt);
  pool.release(t);
  return found;
}

TEST(block_pool, a_prompt_is_found_in_whole_blocks_and_never_all_of_it) {
  const struct {
    std::size_t n_known, n_asked;
    uint64_t found;
    miss why;
    const char* reason;
  } rows[] = {
      {0, 5, 0, miss::nothing_known, "the pool is new"},
      {4, 5, 4, miss::none, "both blocks, and one token to compute"},
      {4, 4, 2, miss::none, "the last token is to be computed, with its block"},
      {5, 9, 4, miss::nothing_known, "a partial block is not known"},
      {4, 2, 0, miss::none, "one block, of which one token is to be computed"},
      {4, 1, 0, miss::none, "less than a block"},
      {4, 0, 0, miss::none, "nothing was asked for"},
  };
  for (const auto& row : rows) {
    block_pool pool(small(8), secret);
    if (row.n_known != 0) run(pool, prompt_of(row.n_known));
    table t;
    copy_list copies;
    const auto found = pool.match(t, prompt_of(row.n_asked), 5, copies);
    ASSERT_TRUE(found) << row.reason;
    EXPECT_EQ(found->tokens, row.found) << row.reason;
    EXPECT_EQ(found->why, row.why) << row.reason;
    EXPECT_EQ(t.tokens(), row.found) << row.reason;
    EXPECT_EQ(t.held() + t.reserved(), 5u) << row.reason;
    pool.release(t);
  }
}

TEST(block_pool, blocks_have_64_tokens) {
  block_pool pool({.n_blocks = 4}, secret);
  run(pool, prompt_of(200));
  EXPECT_EQ(run(pool, prompt_of(200)).tokens, 192u);
}

TEST(block_pool, a_miss_has_a_reason) {
  block_pool pool(small(4), secret);
  run(pool, {1, 1, 2, 2, 0});
  EXPECT_EQ(run(pool, {5, 5, 2, 2, 0}).why, miss::differs) << "at the first block";
  EXPECT_EQ(pool.stats().evicted_blocks, 1u);
  EXPECT_EQ(run(pool, {1, 1, 2, 2, 0}).why, miss::evicted);
  EXPECT_EQ(run(pool, {1, 1, 3, 3, 0}).why, miss::differs) << "at the second";
  const auto stats = pool.stats();
  EXPECT_EQ(stats.misses[std::size_t(miss::nothing_known)], 1u);
  EXPECT_EQ(stats.misses[std::size_t(miss::differs)], 2u);
  EXPECT_EQ(stats.misses[std::size_t(miss::evicted)], 1u);
  EXPECT_EQ(stats.queried_tokens, 20u);
  EXPECT_EQ(stats.found_tokens, 4u) << "the first block, twice";
}

// So many are remembered as there are buckets: 64 for a small pool.
TEST(block_pool, what_was_evicted_is_remembered_for_a_while) {
  block_pool pool(small(2), secret);
  for (int32_t i = 0; i < 1000; ++i) run(pool, {i, i, 0});
  int evicted = 0;
  for (int32_t i = 0; i < 900; ++i) {
    table t;
    copy_list copies;
    const auto found = pool.match(t, tokens{i, i, 0}, 1, copies);
    ASSERT_TRUE(found);
    evicted += found->why == miss::evicted;
    pool.release(t);
  }
  EXPECT_GT(evicted, 0);
  EXPECT_LE(evicted, 64);
}

TEST(block_pool, the_longest_unused_goes_first_and_no_parent_before_its_child) {
  block_pool pool(small(6), secret);
  const tokens a{1, 1, 2, 2, 3, 3}, b{4, 4, 5, 5, 6, 6};
  run(pool, a);
  run(pool, b);
  ASSERT_EQ(pool.stats().blocks_cached, 6u);
  run(pool, {1, 1, 2, 2, 3, 3, 0});  // a is used later than b, and this takes b's deepest block
  const auto found = [&](tokens prompt) {
    prompt.push_back(0);
    table t;
    copy_list copies;
    const auto out = pool.match(t, prompt, 0, copies);
    pool.release(t);
    return out->tokens;
  };
  EXPECT_EQ(found(b), 4u);
  EXPECT_EQ(found(a), 6u);
  table t;
  begin(pool, t, {7, 7, 8, 8});  // one is free; the other is of b, which was asked for before a
  EXPECT_EQ(found(a), 6u);
  EXPECT_EQ(found(b), 2u);
  pool.release(t);
}

TEST(block_pool, what_is_used_is_not_evicted_and_what_is_reserved_not_given_away) {
  block_pool pool(small(4), secret);
  table first, second;
  copy_list copies;
  begin(pool, first, {1, 1, 2}, 3);
  EXPECT_EQ(pool.available(), 1u) << "3 of 4 blocks are for the first";
  EXPECT_EQ(pool.match(second, tokens{5, 5, 5}, 2, copies).error(), shortage::blocks);
  EXPECT_FALSE(pool.reserve(first, 5));
  EXPECT_TRUE(second.blocks().empty());
  ASSERT_TRUE(pool.match(second, tokens{1, 1, 3}, 2, copies)) << "one of the two is there";
  EXPECT_EQ(second.blocks()[0], first.blocks()[0]);
  EXPECT_EQ(pool.available(), 0u);
  EXPECT_TRUE(pool.extend(second, 2, copies));
  EXPECT_FALSE(pool.extend(second, 1, copies)) << "beyond its reservation";
  EXPECT_FALSE(pool.extend(second, UINT64_MAX - 8, copies)) << "nor where sums wrap";
  EXPECT_TRUE(pool.extend(first, 3, copies)) << "what is reserved is there";
  EXPECT_TRUE(copies.empty());
  pool.release(first);
  pool.release(second);
  pool.release(second);  // it is empty
  EXPECT_EQ(pool.stats().blocks_used, 0u);
  EXPECT_EQ(pool.available(), 4u);
}

TEST(block_pool, cached_blocks_that_are_found_count_against_the_room) {
  block_pool pool(small(3), secret);
  run(pool, {1, 1, 2, 2, 3});
  table first, second;
  copy_list copies;
  begin(pool, first, {9, 9}, 2);  // leaves one
  EXPECT_EQ(pool.match(second, tokens{1, 1, 0}, 2, copies).error(), shortage::blocks);
  ASSERT_TRUE(pool.match(second, tokens{1, 1, 0}, 1, copies));
  EXPECT_TRUE(pool.extend(first, 2, copies)) << "by the last block";
  pool.release(first);
  pool.release(second);
}

TEST(block_pool, a_partial_block_is_shared_by_forks_until_it_is_written) {
  block_pool pool(small(6), secret);
  table parent, child, grandchild;
  copy_list copies;
  begin(pool, parent, {1, 1, 2}, 1);
  ASSERT_TRUE(pool.fork(parent, child, 3, copies));
  ASSERT_TRUE(pool.fork(child, grandchild, 2, copies));
  EXPECT_TRUE(copies.empty());
  EXPECT_EQ(pool.stats().blocks_used, 2u);
  EXPECT_EQ(pool.stats().blocks_reserved, 3u) << "two for copies, one for the child's third";
  const uint32_t shared = parent.blocks()[1];
  ASSERT_TRUE(pool.extend(parent, 1, copies));
  EXPECT_EQ(copies.from, std::vector{shared});
  EXPECT_EQ(copies.to, std::vector{parent.blocks()[1]});
  ASSERT_TRUE(pool.extend(child, 3, copies));
  ASSERT_TRUE(pool.extend(grandchild, 1, copies));
  EXPECT_EQ(copies.from.size(), 2u) << "the last one writes in place";
  EXPECT_EQ(grandchild.blocks()[1], shared);
  EXPECT_EQ(parent.blocks()[0], grandchild.blocks()[0]);
  for (table* t : {&parent, &child, &grandchild}) pool.release(*t);
  EXPECT_EQ(pool.available(), 6u);
}

TEST(block_pool, a_sequence_takes_the_known_block_in_place_of_an_equal_one_of_its_own) {
  block_pool pool(small(6), secret);
  table first, second;
  copy_list copies;
  const tokens prompt{1, 1, 2, 2, 3, 3};
  for (table* t : {&first, &second}) {  // both begin before either is known
    ASSERT_TRUE(pool.match(*t, prompt, 3, copies));
    ASSERT_TRUE(pool.extend(*t, 6, copies));
  }
  EXPECT_EQ(pool.stats().blocks_used, 6u);
  pool.publish(first, prompt);
  pool.publish(second, prompt);
  EXPECT_TRUE(std::ranges::equal(first.blocks(), second.blocks()));
  EXPECT_EQ(pool.stats().blocks_used, 3u);
  pool.release(first);
  pool.release(second);
}

TEST(block_pool, only_what_is_computed_is_published) {
  block_pool pool(small(6), secret);
  table t;
  copy_list copies;
  const tokens prompt{1, 1, 2, 2, 3, 3};
  ASSERT_TRUE(pool.match(t, prompt, 3, copies));
  ASSERT_TRUE(pool.extend(t, 6, copies));
  pool.publish(t, std::span(prompt).first(3));
  pool.release(t);
  EXPECT_EQ(pool.stats().blocks_cached, 1u);
  EXPECT_EQ(run(pool, prompt).tokens, 2u);
}

TEST(block_pool, truncation_leaves_whole_what_others_read) {
  block_pool pool(small(8), secret);
  table t, other;
  copy_list copies;
  begin(pool, t, {1, 1, 2, 2, 3}, 3);
  EXPECT_EQ(pool.truncate(t, 9, copies), 5u) << "it has no more";
  EXPECT_EQ(pool.truncate(t, 3, copies), 2u) << "the tree knows the second block";
  EXPECT_EQ(t.held() + t.reserved(), 4u) << "all can be had again";
  ASSERT_TRUE(pool.extend(t, 2, copies));
  EXPECT_EQ(pool.truncate(t, 3, copies), 3u) << "its own block";
  ASSERT_TRUE(pool.fork(t, other, 2, copies));
  EXPECT_EQ(pool.truncate(other, 0, copies), 0u);
  EXPECT_EQ(run(pool, {1, 1, 2, 2, 0}).tokens, 4u) << "still known";
  pool.release(t);
  pool.release(other);
  EXPECT_EQ(pool.stats().blocks_reserved, 0u);
}

TEST(block_pool, windows_give_blocks_back_and_go_on_for_ever) {
  for (const bool shared : {false, true}) {
    shape s = small(8);
    s.windows = true;
    block_pool pool(s, secret);
    table t, other;
    copy_list copies;
    const tokens prompt{1, 1, 2, 2, 3, 3, 4};
    begin(pool, t, prompt);  // 4 blocks at a time
    if (shared) {
      ASSERT_TRUE(pool.match(other, prompt, 4, copies));
    }
    EXPECT_EQ(pool.available(), shared ? 0u : 4u) << "a shared block is counted twice";
    for (uint64_t n = prompt.size(); n < 100; ++n) {
      pool.drop_unseen(t, n - 3, 2);
      ASSERT_TRUE(pool.extend(t, 1, copies)) << n;
      pool.publish(t, prompt_of(n + 1));
    }
    EXPECT_EQ(t.blocks()[1], no_block);
    EXPECT_NE(t.blocks()[0], no_block) << "kept";
    EXPECT_EQ(pool.truncate(t, 20, copies), 2u) << "what was given back is not there";
    pool.release(t);
    pool.release(other);
    EXPECT_EQ(run(pool, prompt).tokens, shared ? 6u : 4u);
  }
}

TEST(block_pool, with_states_a_prefix_ends_at_a_checkpoint) {
  block_pool pool(small(8, 3), secret);
  table t, other;
  copy_list copies;
  const tokens prompt{1, 1, 2, 2, 3, 3};
  ASSERT_TRUE(pool.match(t, prompt, 4, copies));
  ASSERT_TRUE(pool.extend(t, 4, copies));
  EXPECT_FALSE(pool.checkpoint(t, copies)) << "not published";
  pool.publish(t, std::span(prompt).first(4));
  ASSERT_TRUE(pool.checkpoint(t, copies));
  EXPECT_EQ(copies.from, std::vector{8 + t.state()});
  const uint32_t kept = copies.to.at(0);
  EXPECT_TRUE(pool.checkpoint(t, copies));
  EXPECT_EQ(copies.from.size(), 1u) << "it is there already";
  ASSERT_TRUE(pool.extend(t, 1, copies));
  EXPECT_FALSE(pool.checkpoint(t, copies)) << "not at a border";
  ASSERT_TRUE(pool.extend(t, 1, copies));
  pool.publish(t, prompt);

  copies.clear();
  const auto found = pool.match(other, tokens{1, 1, 2, 2, 3, 3, 9}, 4, copies);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->tokens, 4u);
  EXPECT_EQ(found->why, miss::state_missing) << "the third block is known";
  EXPECT_EQ(copies.from, std::vector{kept});
  EXPECT_EQ(copies.to, std::vector{8 + other.state()});

  copies.clear();
  EXPECT_EQ(pool.truncate(t, 5, copies), 4u) << "the last checkpoint";
  EXPECT_EQ(copies.from, std::vector{kept});
  table third, fourth;
  ASSERT_TRUE(pool.fork(t, third, 2, copies)) << "takes the checkpoint's state";
  EXPECT_EQ(pool.stats().evicted_states, 1u);
  EXPECT_EQ(pool.match(fourth, prompt, 1, copies).error(), shortage::states);
  EXPECT_EQ(pool.truncate(t, 3, copies), 0u) << "no checkpoint is left";
  for (table* x : {&t, &other, &third}) pool.release(*x);
  EXPECT_EQ(pool.stats().states_free, 3u);
  EXPECT_EQ(run(pool, prompt).why, miss::state_missing) << "the blocks alone are no help";
}

TEST(block_pool, the_only_checkpoint_becomes_the_state_of_what_finds_it) {
  block_pool pool(small(4, 2), secret);
  table t, other;
  copy_list copies;
  begin(pool, t, {1, 1});
  ASSERT_TRUE(pool.checkpoint(t, copies));
  const uint32_t kept = copies.to.at(0) - 4;
  copies.clear();
  ASSERT_EQ(pool.match(other, tokens{1, 1, 2}, 2, copies)->tokens, 2u);
  EXPECT_EQ(other.state(), kept);
  EXPECT_TRUE(copies.empty());
  EXPECT_EQ(pool.stats().states_kept, 0u);
  pool.release(t);
  pool.release(other);
}

TEST(block_pool, an_ended_sequence_can_leave_its_state_as_checkpoint) {
  block_pool pool(small(4, 1), secret);
  table t, other;
  copy_list copies;
  ASSERT_TRUE(pool.match(t, tokens{1, 1, 2}, 2, copies));
  ASSERT_TRUE(pool.extend(t, 2, copies));
  EXPECT_FALSE(pool.leave_checkpoint(t)) << "not published";
  pool.publish(t, tokens{1, 1});
  const uint32_t state = t.state();
  EXPECT_FALSE(pool.checkpoint(t, copies)) << "there is no other state";
  ASSERT_TRUE(pool.leave_checkpoint(t));
  EXPECT_EQ(t.state(), no_block);
  EXPECT_EQ(pool.stats().states_kept, 1u);
  pool.release(t);
  EXPECT_EQ(pool.stats().states_free, 0u);
  ASSERT_EQ(pool.match(other, tokens{1, 1, 2}, 2, copies)->tokens, 2u);
  EXPECT_EQ(other.state(), state);
  EXPECT_TRUE(copies.empty());
  ASSERT_TRUE(pool.leave_checkpoint(other)) << "it had become the state of the table";
  pool.release(other);
  EXPECT_EQ(pool.stats().states_kept, 1u);
}

TEST(block_pool, nothing_is_known_after_contents_are_lost) {
  block_pool pool(small(6, 3), secret);
  table t, other;
  copy_list copies;
  run(pool, {1, 1, 2, 2});
  ASSERT_TRUE(pool.match(t, tokens{3, 3, 4, 4}, 2, copies));
  ASSERT_TRUE(pool.extend(t, 4, copies));
  pool.forget();
  EXPECT_EQ(pool.stats().blocks_cached, 0u);
  EXPECT_EQ(pool.stats().blocks_used, 2u);
  pool.publish(t, tokens{3, 3, 4, 4});
  ASSERT_TRUE(pool.fork(t, other, 2, copies));
  pool.publish(other, tokens{3, 3, 4, 4});
  pool.release(t);
  pool.release(other);
  EXPECT_EQ(pool.stats().blocks_free, 6u);
  EXPECT_EQ(run(pool, {3, 3, 4}).why, miss::nothing_known);
  EXPECT_EQ(run(pool, {3, 3, 4}).why, miss::state_missing) << "it is known again";
}

TEST(block_pool, a_table_moves_with_all_that_it_has) {
  block_pool pool(small(4, 1), secret);
  table t;
  begin(pool, t, {1, 1, 2}, 3);
  table moved = std::move(t);
  EXPECT_EQ(moved.tokens(), 3u);
  EXPECT_EQ(moved.reserved(), 1u);
  pool.release(t);  // empty
  EXPECT_EQ(pool.stats().blocks_used, 2u);
  pool.release(moved);
  EXPECT_EQ(pool.available(), 4u);
  EXPECT_EQ(pool.stats().states_free, 1u);
}

TEST(copy_list, copies_that_touch_each_other_are_not_one_call) {
  const struct {
    std::vector<uint32_t> from, to;
    std::vector<std::size_t> ends;
    const char* why;
  } rows[] = {{{}, {}, {}, "nothing"},
              {{1, 1, 2}, {3, 4, 5}, {3}, "one may be read twice"},
              {{1, 3}, {3, 4}, {1, 2}, "what was written is read"},
              {{1, 2}, {3, 1}, {1, 2}, "what was read is written"},
              {{1, 2}, {3, 3}, {1, 2}, "written twice"},
              {{1, 3, 1, 5}, {3, 4, 5, 6}, {1, 3, 4}, "only what is in the same call counts"}};
  for (const auto& row : rows) {
    const copy_list copies{row.from, row.to};
    std::vector<std::size_t> ends;
    for (std::size_t at = 0; at < row.from.size(); at = ends.back())
      ends.push_back(copies.independent_until(at));
    EXPECT_EQ(ends, row.ends) << row.why;
  }
}

uint64_t hashed = 0;  // tokens
uint64_t counting_hash(uint64_t before, std::span<const int32_t> block, const hash_secret& s) {
  hashed += block.size();
  return chained_hash(before, block, s);
}

TEST(block_pool, each_token_is_hashed_once_by_match_and_once_by_publish) {
  block_pool pool({.n_blocks = 100}, secret, counting_hash);
  const tokens all = prompt_of(6400);
  table t;
  copy_list copies;
  hashed = 0;
  ASSERT_TRUE(pool.match(t, all, 100, copies));
  EXPECT_EQ(hashed, 64u) << "nothing is known";
  hashed = 0;
  for (std::size_t n = 1; n <= all.size(); ++n) {
    ASSERT_TRUE(pool.extend(t, 1, copies));
    pool.publish(t, std::span(all).first(n));
  }
  EXPECT_EQ(hashed, 6400u);
  pool.release(t);
  hashed = 0;
  ASSERT_TRUE(pool.match(t, all, 100, copies));
  EXPECT_EQ(hashed, 6336u);
  pool.release(t);
}

TEST(block_pool, a_course_is_linear_in_its_tokens) {
  testing_support::expect_linear("blocks", 400, [](std::size_t n) {
    block_pool pool({.n_blocks = static_cast<uint32_t>(2 * n), .tokens_per_block = 4}, secret);
    table child;
    copy_list copies;
    for (int32_t i = 0; i < 4; ++i) {  // the last ones evict the first
      table t;
      begin(pool, t, prompt_of(4 * n, i % 3));
      ASSERT_TRUE(pool.fork(t, child, 0, copies));
      pool.drop_unseen(t, 4 * n, 4);
      pool.release(child);
      pool.release(t);
    }
  });
}

// A root with many children, which come and go.
TEST(block_pool, many_siblings_are_linear) {
  testing_support::expect_linear("siblings", 400, [](std::size_t n) {
    block_pool pool(small(static_cast<uint32_t>(n)), secret);
    for (int32_t i = 0; i < static_cast<int32_t>(2 * n); ++i) run(pool, {i, i});
  });
}

TEST(block_pool, nothing_is_allocated_while_a_sequence_runs_within_its_reservation) {
  block_pool pool(small(64, 4), secret);
  const tokens all = prompt_of(100);
  table t;
  copy_list copies;
  copies.from.reserve(8), copies.to.reserve(8);
  run(pool, prompt_of(60, 500));  // so that some are evicted
  ASSERT_TRUE(pool.match(t, all, 50, copies));
  const heap_use use;
  for (std::size_t n = 1; n <= all.size(); ++n) {
    ASSERT_TRUE(pool.extend(t, 1, copies));
    pool.publish(t, std::span(all).first(n));
    if (n == 50) {
      ASSERT_TRUE(pool.checkpoint(t, copies));
    }
  }
  EXPECT_EQ(use.peak(), 0u);
  EXPECT_GT(pool.stats().evicted_blocks, 0u);
  pool.release(t);
}

}  // namespace
}  // namespace bitnet::kv
