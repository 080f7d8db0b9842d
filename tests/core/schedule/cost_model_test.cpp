#include "schedule/cost_model.hpp"

#include <gtest/gtest.h>

namespace bitnet::schedule {
namespace {

using std::chrono::nanoseconds;

TEST(cost_model, prompts_get_what_three_steps_of_decodes_leave) {
  const struct {
    double stretch;
    int64_t decodes_ns, prompt_ns;  // alone; of 100 tokens beside them
    uint32_t want;
    const char* why;
  } rows[] = {
      {3.0, 1000, 2000, 200, "2000 ns are left, of 10 each: 200, and the 4 decodes"},
      {2.0, 1000, 2000, 100, "1000 ns are left"},
      {3.0, 1000, 101000, 2, "a token takes as long as a step"},
      {3.0, 1000, 901000, 2, "it takes nine steps: the least chunk all the same"},
      {3.0, 1000, 1000, cost_model::no_bound, "tokens of prompts cost nothing"},
      {3.0, 1000, 500, cost_model::no_bound, "a step with prompts was quicker: noise"},
      {3.0, 1000, 1001, 200000, "0.01 ns each"},
  };
  for (const auto& row : rows) {
    cost_model m(row.stretch);
    m.learn(4, 0, nanoseconds(row.decodes_ns));
    m.learn(4, 100, nanoseconds(row.prompt_ns));
    EXPECT_EQ(m.prompt_tokens(4), row.want) << row.why;
  }
}

TEST(cost_model, unknown_costs_are_measured_first) {
  cost_model m(3);
  EXPECT_EQ(m.prompt_tokens(0), cost_model::no_bound) << "no sequence waits for a token";
  EXPECT_EQ(m.prompt_tokens(4), 0U) << "a step of decodes alone is to come first";
  m.learn(0, 100, nanoseconds(3000));
  m.learn(4, 0, nanoseconds(1000));
  EXPECT_EQ(m.prompt_tokens(4), 8U) << "what a prompt's token takes is not known";
  EXPECT_EQ(m.prompt_tokens(3), 9U) << "3 decodes are as 4";
  EXPECT_EQ(m.prompt_tokens(5), 0U) << "5 are not";
  m.learn(0, 100, nanoseconds(3000));
  EXPECT_EQ(m.prompt_tokens(4), 100U) << "without decodes the weights are read as well: 20 ns each";
}

// Tokens of the prompt take 170 ns each: 11.8 of them fit into what three steps of decodes leave.
TEST(cost_model, decodes_and_prompts_have_an_even_number_of_rows) {
  const struct {
    uint32_t n_decodes, prompt_ns, want;
    const char* why;
  } rows[] = {
      {1, 170, 11, "12 rows"},
      {4, 170, 10, "14 rows: 15 would be odd"},
      {8, 170, 10, "18 rows"},
      {32, 170, 10, "42 rows"},
      {8, 600, 2, "3.3 tokens: 11 rows would be odd"},
      {1, 2100, 3, "the least chunk, 2, and one more for an even number"},
      {8, 2100, 2, "the least chunk"},
  };
  for (const auto& row : rows) {
    cost_model m(3);
    m.learn(row.n_decodes, 0, nanoseconds(1000));
    m.learn(row.n_decodes, 100, nanoseconds(1000 + 100 * row.prompt_ns));
    EXPECT_EQ(m.prompt_tokens(row.n_decodes), row.want) << row.why;
  }
}

// Each piece takes 1500 ns, and 10 ns for each of its tokens: of 2000 ns 50 tokens are to be had.
TEST(cost_model, small_pieces_are_not_what_a_token_costs) {
  cost_model m(3);
  m.learn(4, 0, nanoseconds(1000));
  m.learn(4, 8, nanoseconds(1000 + 1500 + 8 * 10 + 100'000'000));  // once
  int small = 0, steps = 0;
  for (; m.prompt_tokens(4) < 40 && steps < 1000; ++steps) {
    const uint32_t n = m.prompt_tokens(4);
    if (n == 0) {
      m.learn(4, 0, nanoseconds(1000));
      continue;
    }
    small += n < measured_chunk ? 1 : 0;
    m.learn(4, n, nanoseconds(1000 + 1500 + n * 10));
  }
  EXPECT_EQ(small, 128) << "then one is measured, and counts at once";
  EXPECT_LT(steps, 200);
}

// A token takes 1200 ns: one fits. Pieces of 8 take longer than three steps of decodes.
TEST(cost_model, large_pieces_are_seldom_where_they_do_not_fit) {
  cost_model m(3);
  m.learn(4, 0, nanoseconds(1000));
  m.learn(4, 8, nanoseconds(1000 + 8 * 1200));
  int large = 0, pieces = 0;
  for (; pieces < 10000; ++pieces) {
    const uint32_t n = m.prompt_tokens(4);
    large += n > 2 ? 1 : 0;
    m.learn(4, n, nanoseconds(1000 + n * 1200));
  }
  EXPECT_GT(large, 0);
  EXPECT_LT(large, pieces / 100);
}

TEST(cost_model, a_measure_is_taken_anew_when_it_is_old) {
  cost_model m(3);
  m.learn(4, 0, nanoseconds(1000));
  int steps = 0;
  for (; m.prompt_tokens(4) != 0; ++steps) m.learn(4, 16, nanoseconds(1500));
  EXPECT_EQ(steps, 64);
  m.learn(4, 0, nanoseconds(1000));
  EXPECT_NE(m.prompt_tokens(4), 0U);
}

TEST(cost_model, follows_a_device_that_becomes_slower) {
  cost_model m(3);
  m.learn(4, 0, nanoseconds(1000));
  m.learn(4, 100, nanoseconds(2000));
  for (int i = 0; i < 40; ++i) {
    m.learn(4, 0, nanoseconds(1000));
    m.learn(4, 100, nanoseconds(5000));
  }
  EXPECT_EQ(m.prompt_tokens(4), 50U) << "40 ns each";
}

TEST(cost_model, one_outlier_is_forgotten_soon) {
  cost_model m(3);
  m.learn(1, 0, nanoseconds(1000));
  m.learn(1, 100, nanoseconds(2000));
  m.learn(1, 0, nanoseconds(100000));
  for (int i = 0; i < 24; ++i) m.learn(1, 0, nanoseconds(1000));
  EXPECT_LE(m.prompt_tokens(1), 208U);
}

}  // namespace
}  // namespace bitnet::schedule
