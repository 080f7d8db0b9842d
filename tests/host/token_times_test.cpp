#include "measure/token_times.hpp"

#include <gtest/gtest.h>

namespace bitnet::host {
namespace {

constexpr uint64_t ms = 1'000'000;  // ns

token_times at(uint64_t submitted, std::vector<uint64_t> tokens, uint64_t took = 0) {
  for (uint64_t& t : tokens) t *= ms;
  return {submitted * ms, std::move(tokens), took * ms};
}

TEST(token_times, waits_are_of_one_request) {
  EXPECT_EQ(first_ms(at(10, {25, 27})), 15);
  EXPECT_EQ(first_ms(at(10, {})), std::nullopt);
  std::vector<double> gaps;
  add_between_ms(at(10, {25, 27, 32}), gaps);
  add_between_ms(at(10, {25}), gaps);
  add_between_ms(at(10, {}), gaps);
  add_between_ms(at(0, {1, 1}), gaps);
  EXPECT_EQ(gaps, (std::vector<double>{2, 5, 0}));
}

TEST(token_times, the_rate_is_that_of_the_time_in_which_all_generate) {
  struct row {
    std::vector<token_times> all;
    std::optional<double> want;
    const char* why;
  };
  for (const auto& [all, want, why] : std::initializer_list<row>{
           {{at(0, {10, 20, 30, 40})}, 100, "one request: all of its tokens"},
           {{at(0, {10, 20, 30}), at(0, {11, 21, 31})}, 200, "two in the same steps"},
           {{at(0, {11, 20, 31}), at(0, {10, 21, 30})},
            2000.0 / 9,
            "the order within a step changes: each by what it had from first to last"},
           {{at(0, {1, 2, 3, 10, 20, 30}), at(0, {10, 20, 30, 90, 170})},
            200,
            "what one had alone before and after does not count"},
           {{at(0, {1, 2, 3, 4, 10, 20, 30}), at(0, {10, 20, 30, 90, 170})},
            std::nullopt,
            "most of what one had was alone"},
           {{at(0, {10, 20}), at(0, {30, 40})}, std::nullopt, "never at the same time"},
           {{at(0, {10, 20, 30}), at(0, {25, 35})}, std::nullopt, "one token each is no time"},
           {{at(0, {10, 20, 30}), at(0, {})}, std::nullopt, "a request without tokens"},
           {{at(0, {10})}, std::nullopt, "one token"},
           {{at(0, {10, 20, 30}, 20), at(0, {10, 20, 30}, 22)},
            200,
            "read as they came, or nearly"},
           {{at(0, {10, 20, 30}, 20), at(0, {13, 20, 30}, 20)}, std::nullopt, "one was read late"},
           {{at(0, {10, 10})}, std::nullopt, "no time between them"},
           {{}, std::nullopt, "nothing ran"}}) {
    const auto found = rate_together(all);
    ASSERT_EQ(found.has_value(), want.has_value()) << why;
    if (want) {
      EXPECT_DOUBLE_EQ(*found, *want) << why;
    }
  }
}

}  // namespace
}  // namespace bitnet::host
