#include "base/for_each_part.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace bitnet::base {
namespace {

TEST(for_each_part, visits_each_once_before_it_returns) {
  for (const uint64_t n : {0U, 1U, 2U, 5U, 1000U}) {
    std::vector<std::atomic<int>> visits(n);
    for_each_part(n, [&](uint64_t i) { ++visits[i]; });
    for (const auto& v : visits) EXPECT_EQ(v, 1) << n;
  }
}

TEST(for_each_part, one_part_is_the_callers) {
  std::thread::id visitor;
  for_each_part(1, [&](uint64_t) { visitor = std::this_thread::get_id(); });
  EXPECT_EQ(visitor, std::this_thread::get_id());
}

}  // namespace
}  // namespace bitnet::base
