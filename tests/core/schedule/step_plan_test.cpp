#include "schedule/step_plan.hpp"

#include <gtest/gtest.h>

#include "schedule/cost_model.hpp"

namespace bitnet::schedule {
namespace {

using indices = std::vector<uint32_t>;

TEST(step_plan, decodes_first_then_chunks_of_prompts) {
  constexpr uint32_t any = cost_model::no_bound;
  const struct {
    std::vector<work> all;
    indices order;
    step_bounds most;
    std::vector<std::pair<uint32_t, uint32_t>> want;
    const char* why;
  } rows[] = {
      {{{1}, {1}}, {}, {64, any}, {{0, 1}, {1, 1}}, "each decode has one token"},
      {{{100}}, {0}, {64, any}, {{0, 64}}, "a prompt takes the whole step"},
      {{{40}}, {0}, {64, any}, {{0, 40}}, "a shorter prompt takes all of its tokens"},
      {{{100}, {1}, {1}},
       {0},
       {64, any},
       {{1, 1}, {2, 1}, {0, 62}},
       "decodes come first; 62 tokens are left"},
      {{{100}, {1}},
       {0},
       {64, 16},
       {{1, 1}, {0, 16}},
       "a prompt takes the bound of the cost model"},
      {{{17}, {1}}, {0}, {64, 16}, {{1, 1}, {0, 16}}, "one more than the bound waits"},
      {{{10}, {1}}, {0}, {64, 16}, {{1, 1}, {0, 10}}, "a prompt ends within the bound"},
      {{{10}, {1}, {9}}, {0, 2}, {64, 15}, {{1, 1}, {0, 10}, {2, 5}}, "the next has the rest"},
      {{{100}, {1}}, {0}, {64, 0}, {{1, 1}}, "decodes are measured alone"},
      {{{100}}, {0}, {64, 0}, {{0, 64}}, "there is nothing to measure"},
      {{{20}, {100}, {30}},
       {2, 0, 1},
       {64, any},
       {{2, 30}, {0, 20}, {1, 14}},
       "prompts are taken in their order"},
      {{{20}, {100}, {30}}, {1, 0, 2}, {64, any}, {{1, 64}}, "the first takes all"},
      {{{200}, {1}}, {0}, {300, 40}, {{1, 1}, {0, 40}}, "a long prompt takes all of the bound"},
      {{{200, 30}}, {0}, {64, any}, {{0, 30}}, "a state is kept behind the 30th"},
      {{{20, 30}}, {0}, {64, any}, {{0, 20}}, "the state would be behind the end of the prompt"},
      {{{200, 100}, {1}}, {0}, {64, any}, {{1, 1}, {0, 63}}, "this step does not reach the state"},
      {{{100}, {1}, {1}},
       {0},
       {5, any},
       {{1, 1}, {2, 1}, {0, 3}},
       "prompts go on in a step of 5 tokens too"},
      {{{100}}, {0}, {1, any}, {{0, 1}}, "a step of one token has one of the prompt"},
  };
  for (const auto& row : rows) {
    std::vector<share> got;
    plan_step(row.all, row.order, row.most, got);
    std::vector<std::pair<uint32_t, uint32_t>> pairs;
    for (const share& s : got) pairs.emplace_back(s.index, s.n_tokens);
    EXPECT_EQ(pairs, row.want) << row.why;
  }
}

TEST(step_plan, running_decodes_leave_room_for_a_chunk) {
  const struct {
    uint32_t max_tokens, max_sequences, max_outputs, want;
    const char* why;
  } rows[] = {
      {512, 32, 64, 32, "as many run as the device takes"},
      {512, 64, 8, 8, "each decode has a row"},
      {40, 32, 32, 24, "16 tokens are left for prompts"},
      {16, 32, 32, 8, "decodes take half of a small step"},
      {2, 8, 8, 1, "one decode runs"},
      {1, 8, 8, 1, "one token is of a decode or of a prompt"},
  };
  for (const auto& row : rows) {
    step_limits most;
    most.max_tokens = row.max_tokens;
    most.max_sequences = row.max_sequences;
    most.max_outputs = row.max_outputs;
    EXPECT_EQ(max_running_of(most), row.want) << row.why;
  }
}

TEST(step_plan, whatever_is_to_do_the_first_prompt_goes_on) {
  for (uint32_t max_tokens = 1; max_tokens <= 70; ++max_tokens) {
    step_limits most;
    most.max_tokens = max_tokens;
    most.max_sequences = most.max_outputs = 40;
    const uint32_t n = max_running_of(most);
    std::vector<work> all(n, work{1});
    for (const uint64_t left : {2U, 15U, 16U, 17U, 1000U}) {
      all.back() = {left};
      std::vector<share> got;
      plan_step(all, indices{n - 1}, {max_tokens, 8}, got);
      EXPECT_EQ(got.size(), n) << max_tokens << " tokens, " << left << " left";
      uint32_t tokens = 0;
      for (const share& s : got) tokens += s.n_tokens;
      EXPECT_LE(tokens, max_tokens);
    }
  }
}

}  // namespace
}  // namespace bitnet::schedule
