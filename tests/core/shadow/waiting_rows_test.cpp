// Rows between threads: bounded, in order, dropped where there is no room, each one whole.

#include "shadow/waiting_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>
#include <utility>

namespace bitnet::shadow {
namespace {

std::vector<int> taken_of(double share, int n) {
  even_share s(share);
  std::vector<int> out;
  for (int i = 1; i <= n; ++i)
    if (s.next()) out.push_back(i);
  return out;
}

TEST(even_share, is_even_and_the_same_each_time) {
  EXPECT_EQ(taken_of(0.1, 30), (std::vector<int>{10, 20, 30}));
  EXPECT_EQ(taken_of(0.5, 6), (std::vector<int>{2, 4, 6}));
  EXPECT_EQ(taken_of(1, 4), (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(taken_of(1.0 / 3, 9), (std::vector<int>{3, 6, 9}));
  EXPECT_EQ(taken_of(0.4, 10), (std::vector<int>{3, 5, 8, 10}));
  EXPECT_EQ(taken_of(0.001, 100'000).size(), 100U);
}

TEST(waiting_rows, gives_them_in_order_and_drops_where_it_is_full) {
  waiting_rows rows(2, 3, 8);
  const std::vector<int32_t> tokens = {1, 2, 3, 4};
  const std::vector<float> logits = {0.5F, 1.5F, 2.5F};
  EXPECT_EQ(rows.size(), 0U);
  EXPECT_TRUE(rows.offer({1, {7, 1}, 1}, std::span(tokens).first(2), logits));
  EXPECT_TRUE(rows.offer({1, {7, 1}, 2}, std::span(tokens).first(3), logits));
  EXPECT_FALSE(rows.offer({1, {7, 1}, 3}, tokens, logits));
  EXPECT_EQ(rows.size(), 2U);
  const auto* first = rows.take();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->at.position, 1U);
  EXPECT_EQ(first->at.of.request, 7U);
  EXPECT_EQ(first->tokens, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(first->logits, logits);
  EXPECT_EQ(rows.size(), 1U);
  EXPECT_FALSE(rows.offer({1, {7, 1}, 3}, tokens, logits)) << "a row at work has its place";
  rows.give_back();
  EXPECT_TRUE(rows.offer({1, {7, 1}, 3}, tokens, logits));
  for (const uint64_t position : {2U, 3U}) {
    const auto* next = rows.take();
    ASSERT_NE(next, nullptr);
    EXPECT_EQ(next->at.position, position);
    rows.give_back();
  }
  EXPECT_EQ(rows.size(), 0U);
}

TEST(waiting_rows, stop_wakes_the_one_that_waits) {
  waiting_rows rows(1, 1, 1);
  std::jthread taker([&] { EXPECT_EQ(rows.take(), nullptr); });
  rows.stop();
}

// No row is of two threads, comes twice or is lost.
TEST(waiting_rows, of_many_threads_are_whole) {
  constexpr uint64_t n_threads = 3, n_rows = 400, width = 97;
  waiting_rows rows(4, width, n_rows + 1);
  std::atomic<uint64_t> kept{0}, dropped{0};
  std::set<std::pair<uint64_t, uint64_t>> seen;
  uint64_t taken = 0;
  {
    std::jthread taker([&] {
      while (const auto* row = rows.take()) {
        const uint64_t of = row->at.source;
        EXPECT_TRUE(seen.emplace(of, row->at.position).second);
        EXPECT_EQ(row->tokens.size(), row->at.position);
        const auto mark = static_cast<float>(of * 1000 + row->at.position);
        EXPECT_EQ(std::ranges::count(row->logits, mark), static_cast<std::ptrdiff_t>(width));
        ++taken;
        rows.give_back();
      }
    });
    std::vector<std::jthread> offering;
    for (uint64_t t = 0; t < n_threads; ++t)
      offering.emplace_back([&, t] {
        for (uint64_t i = 1; i <= n_rows; ++i) {
          const std::vector<int32_t> tokens(i, static_cast<int32_t>(t));
          const std::vector<float> logits(width, static_cast<float>(t * 1000 + i));
          ++(rows.offer({t, {}, i}, tokens, logits) ? kept : dropped);
        }
      });
    offering.clear();
    while (rows.size() != 0) std::this_thread::yield();
    rows.stop();
  }
  EXPECT_EQ(kept + dropped, n_threads * n_rows);
  EXPECT_EQ(taken, kept);
}

}  // namespace
}  // namespace bitnet::shadow
