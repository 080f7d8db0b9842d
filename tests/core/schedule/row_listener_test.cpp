// What the listener of rows is offered, and that answers are the same with it.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <utility>

#include "generate/row_listener.hpp"
#include "small_world.hpp"
#include "speculate/drafter.hpp"

namespace bitnet::schedule {
namespace {

using namespace testing_support;  // NOLINT(google-build-using-namespace): the fake world

// Wants each `each`th row, and holds every one against the device's arithmetic.
class taster final : public generate::row_listener {
 public:
  taster(uint32_t each, const step_limits& most) : each_(each), most_(most) {}

  bool wants_next() override {
    ++asked;
    wanted += asked % each_ == 0 ? 1 : 0;
    return asked % each_ == 0;
  }
  void offer(const generate::row_origin& of, std::span<const int32_t> tokens,
             std::span<const float> logits) override {
    std::vector<float> expected(most_.n_vocab);
    fill_row(hash_of(tokens, most_), expected);
    EXPECT_TRUE(std::ranges::equal(expected, logits)) << "behind " << tokens.size() << " tokens";
    lengths[{of.request, of.choice}].insert(tokens.size());
    ++offered;
  }

  uint64_t asked = 0, wanted = 0, offered = 0;
  std::map<std::pair<uint64_t, uint32_t>, std::set<std::size_t>> lengths;

 private:
  const uint32_t each_;
  const step_limits most_;
};

generate::options listed() {  // rows with the 5 largest logits are enough
  generate::options o;
  o.sampling.temperature = 0.8F;
  o.sampling.top_k = 5;
  o.sampling.seed = 3;
  return o;
}

request ask(std::size_t n_prompt, uint32_t salt, uint32_t n = 1) {
  request r = world::ask(some_tokens(n_prompt, salt), 12, n);
  r.generation.sampling = listed().sampling;
  return r;
}

void expect_alone(const world::given& one, std::size_t n_prompt, uint32_t salt,
                  const step_limits& most) {
  generate::options o = listed();
  o.max_tokens = 12;
  o.ignore_end = true;
  for (uint32_t c = 0; c < one.got->choices.size(); ++c)
    EXPECT_EQ(one.got->choices[c].tokens, alone(some_tokens(n_prompt, salt), o, c, most).tokens);
}

TEST(row_listener, gets_the_row_of_a_prompt_and_those_of_decoding) {
  world w;
  const auto rows = std::make_shared<taster>(1, w.most);
  w.engine->set_listener(rows);
  const auto one = w.submit(ask(100, 1, 2)), two = w.submit(ask(7, 2));
  w.run();
  expect_alone(one, 100, 1, w.most);
  expect_alone(two, 7, 2, w.most);
  // Behind the prompt once for all choices, and behind each token but the last.
  std::set<std::size_t> of_first, of_second, of_other;
  for (std::size_t i = 0; i < 12; ++i) of_first.insert(100 + i), of_other.insert(7 + i);
  of_second = of_first;
  of_second.erase(100);
  EXPECT_EQ((rows->lengths[{one.id, 0}]), of_first);
  EXPECT_EQ((rows->lengths[{one.id, 1}]), of_second);
  EXPECT_EQ((rows->lengths[{two.id, 0}]), of_other);
  EXPECT_EQ(rows->offered, 12U + 11U + 12U);
}

TEST(row_listener, rows_are_whole_only_where_one_is_wanted) {
  world w;
  w.runner->keeps_notes = true;
  const auto rows = std::make_shared<taster>(4, w.most);
  w.engine->set_listener(rows);
  const auto one = w.submit(ask(7, 2));
  w.run();
  expect_alone(one, 7, 2, w.most);
  EXPECT_EQ(rows->asked, 12U);
  EXPECT_EQ(rows->offered, 3U);
  for (std::size_t i = 0; i < w.runner->notes.size(); ++i)
    EXPECT_EQ(w.runner->notes[i].top_logits == 0, (i + 1) % 4 == 0) << i;
}

class guesser final : public speculate::drafter {
 public:
  result<void> propose(std::span<const int32_t>, uint32_t most,
                       std::vector<int32_t>& draft) override {
    for (uint32_t i = 0; i < std::min(most, 3U); ++i) draft.push_back(static_cast<int32_t>(i));
    return {};
  }
  [[nodiscard]] const char* name() const override { return "guesser"; }
};

TEST(row_listener, gets_the_rows_behind_drafts) {
  world w;
  const auto rows = std::make_shared<taster>(2, w.most);
  w.engine->set_listener(rows);
  request r = ask(30, 5);
  r.make_drafter = [] { return std::make_unique<guesser>(); };
  const auto one = w.submit(std::move(r));
  w.run();
  expect_alone(one, 30, 5, w.most);
  EXPECT_GT(w.engine->counted().speculated.drafted, 0U);
  EXPECT_GT(rows->offered, 0U);
  EXPECT_EQ(rows->offered, rows->wanted);
}

TEST(row_listener, a_step_that_fails_offers_nothing) {
  world w;
  const auto rows = std::make_shared<taster>(1, w.most);
  w.engine->set_listener(rows);
  int left = 1;
  w.runner->fails = [&](std::span<const slice>) -> std::optional<failure> {
    if (left-- > 0) return failure{BITNET_INTERNAL, "once"};
    return std::nullopt;
  };
  const auto one = w.submit(ask(7, 2)), two = w.submit(ask(9, 3));
  w.run();
  expect_alone(one, 7, 2, w.most);
  expect_alone(two, 9, 3, w.most);
  EXPECT_EQ(rows->offered, 24U);
  EXPECT_EQ(rows->wanted, 26U);
}

TEST(row_listener, is_asked_for_nothing_once_it_was_taken_away) {
  world w;
  const auto rows = std::make_shared<taster>(1, w.most);
  w.engine->set_listener(rows);
  w.submit(ask(7, 2));
  w.run();
  const uint64_t before = rows->asked;
  w.engine->set_listener(nullptr);
  w.submit(ask(7, 2));
  w.run();
  EXPECT_EQ(rows->asked, before);
  EXPECT_EQ(rows.use_count(), 1) << "it is let go";
}

TEST(row_listener, scores_of_a_prompt_are_not_offered) {
  world w;
  const auto rows = std::make_shared<taster>(1, w.most);
  w.engine->set_listener(rows);
  request r = ask(20, 4);
  r.prompt_logprobs = 1;
  const auto one = w.submit(std::move(r));
  w.run();
  EXPECT_EQ(*rows->lengths.at({one.id, 0}).begin(), 20U);
  EXPECT_EQ(rows->offered, 12U);
}

}  // namespace
}  // namespace bitnet::schedule
