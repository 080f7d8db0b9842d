#include "base/cancel_flags.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

namespace bitnet {
namespace {

TEST(cancel_flags, a_token_finds_its_own_flag) {
  cancel_flags flags;
  const auto one = flags.make();
  const auto other = flags.make();
  const uint64_t token = cancel_flags::token_of(*one);
  EXPECT_NE(token, cancel_flags::token_of(*other));
  EXPECT_FALSE(cancel_flags::is_set(token));
  one->store(true);
  EXPECT_TRUE(cancel_flags::is_set(token));
  EXPECT_FALSE(cancel_flags::is_set(cancel_flags::token_of(*other)));
  one->store(false);
  EXPECT_FALSE(cancel_flags::is_set(token));
}

TEST(cancel_flags, count_as_set_from_their_deadline_on) {
  using clock = std::chrono::steady_clock;
  cancel_flags flags;
  auto one = flags.make();
  const auto other = flags.make();
  const uint64_t token = cancel_flags::token_of(*one);
  cancel_flags::set_deadline(*one, clock::now() + std::chrono::hours(1));
  EXPECT_FALSE(cancel_flags::is_set(token));
  const auto soon = clock::now() + std::chrono::milliseconds(20);
  cancel_flags::set_deadline(*one, soon);
  while (!cancel_flags::is_set(token)) std::this_thread::yield();
  EXPECT_GE(clock::now(), soon);
  EXPECT_FALSE(cancel_flags::is_set(cancel_flags::token_of(*other)));
  cancel_flags::set_deadline(*one, clock::time_point::max());
  EXPECT_FALSE(cancel_flags::is_set(token)) << "the deadline was taken back";
  cancel_flags::set_deadline(*one, soon);
  one.reset();
  EXPECT_FALSE(cancel_flags::is_set(token)) << "what is given back has none";
}

TEST(cancel_flags, token_0_is_never_cancelled) {
  EXPECT_FALSE(cancel_flags::is_set(0));
}

// A backend that is late may ask once more with the token of work that has ended.
TEST(cancel_flags, a_token_may_be_asked_with_after_its_flag_is_given_back) {
  cancel_flags flags;
  auto one = flags.make();
  const uint64_t token = cancel_flags::token_of(*one);
  one->store(true);
  one.reset();
  EXPECT_FALSE(cancel_flags::is_set(token));
}

TEST(cancel_flags, are_used_again_and_not_set_then) {
  cancel_flags flags;
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::array both = {flags.make(), flags.make()};
    for (const auto& one : both) {
      EXPECT_FALSE(one->load());
      seen.insert(cancel_flags::token_of(*one));
      one->store(true);
    }
  }
  EXPECT_EQ(seen.size(), 2U);
}

TEST(cancel_flags, those_in_use_at_a_time_are_different_flags_that_stay_where_they_are) {
  cancel_flags flags;
  std::vector<cancel_flags::owned> all;
  std::set<uint64_t> tokens;
  for (int i = 0; i < 5000; ++i) {
    all.push_back(flags.make());
    tokens.insert(cancel_flags::token_of(*all.back()));
  }
  EXPECT_EQ(tokens.size(), all.size());
  for (std::size_t i = 0; i < all.size(); i += 2) all[i]->store(true);
  for (std::size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(cancel_flags::is_set(cancel_flags::token_of(*all[i])), i % 2 == 0) << i;
}

// Sessions open and close while others are asked about; TSan looks on.
TEST(cancel_flags, are_made_and_asked_by_many_threads) {
  cancel_flags flags;
  const auto kept = flags.make();
  const uint64_t token = cancel_flags::token_of(*kept);
  std::vector<std::thread> all;
  for (int i = 0; i < 4; ++i)
    all.emplace_back([&] {
      for (int k = 0; k < 1000; ++k) {
        const auto own = flags.make();
        own->store(true);
        EXPECT_TRUE(cancel_flags::is_set(cancel_flags::token_of(*own)));
        EXPECT_FALSE(cancel_flags::is_set(token));
      }
    });
  for (std::thread& t : all) t.join();
}

}  // namespace
}  // namespace bitnet
