// Bounds of thinking through bitnet.h: in sessions and among the requests of a scheduler.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "many_requests.hpp"

namespace {

using namespace bitnet::test;  // NOLINT(google-build-using-namespace): the requests

class reasoning_budget : public scheduler {
 protected:
  static wish wish_of(uint32_t kind, int32_t budget) {
    wish w;
    w.prompt = prompt_of(9, kind);
    w.seed = kind;
    w.temperature = kind % 2 == 0 ? 0.0F : 1.0F;
    w.max_tokens = 30;
    w.reasoning_budget = budget;
    return w;
  }
  std::string text_of(const std::vector<bitnet_token>& ids) {
    std::string out(4096, ' ');
    uint64_t n = 0;
    EXPECT_EQ(bitnet_detokenize(demo_.model, ids.data(), ids.size(), BITNET_DETOKENIZE_SPECIAL,
                                out.data(), out.size(), &n, &error_),
              BITNET_OK)
        << error_.message;
    out.resize(n);
    return out;
  }
};

// Up to the bound the tokens are those without one; then comes the tag, whole and once.
TEST_F(reasoning_budget, the_end_of_thinking_comes_behind_its_tokens) {
  for (const int32_t budget : {0, 1, 5, 12}) {
    SCOPED_TRACE(budget);
    const auto plain = alone(wish_of(3, -1));
    const auto bound = alone(wish_of(3, budget));
    const auto at = static_cast<std::ptrdiff_t>(budget);
    ASSERT_GT(bound.size(), static_cast<std::size_t>(budget));
    EXPECT_TRUE(std::equal(plain.begin(), plain.begin() + at, bound.begin()));
    const std::string rest = text_of({bound.begin() + at, bound.end()});
    EXPECT_EQ(rest.find("</think>"), rest.starts_with(' ') ? 1U : 0U) << rest;
    EXPECT_EQ(rest.find("</think>", 2), std::string::npos) << rest;
    EXPECT_GT(rest.size(), 8U) << "and the answer goes on";
  }
}

TEST_F(reasoning_budget, requests_give_what_each_gives_alone) {
  bitnet_scheduler_options o = defaults();
  o.max_sequences = 16;
  ASSERT_EQ(open(o), BITNET_OK) << error_.message;
  std::vector<wish> wishes;
  std::vector<bitnet_request*> asked;
  for (uint32_t i = 0; i < 16; ++i) {
    wishes.push_back(wish_of(i, i % 4 == 3 ? -1 : static_cast<int32_t>(i)));
    asked.push_back(submit(wishes.back()));
  }
  for (uint32_t i = 0; i < 16; ++i)
    EXPECT_EQ(read(asked[i]).at(0).tokens, alone(wishes[i])) << "request " << i;
}

TEST_F(reasoning_budget, a_bound_without_an_end_is_rejected) {
  bitnet_generation g;
  bitnet_generation_defaults(&g, sizeof g);
  EXPECT_EQ(g.reasoning_budget, -1);
  g.reasoning_budget = 4;
  bitnet_generation_result r{};
  r.struct_size = sizeof r;
  const bitnet_token prompt = 5;
  EXPECT_EQ(bitnet_generate(demo_.session, &prompt, 1, &g, &r, &error_), BITNET_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("reasoning_ends is empty"), std::string::npos)
      << error_.message;
}

}  // namespace
