// Log probabilities of prompts: those of the rows that the device gives behind each token, however
// prompts are cut into steps, and no other token of an answer than without them.
#include "generate/prompt_scores.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "small_world.hpp"

namespace bitnet::schedule {
namespace {

using namespace testing_support;  // NOLINT(google-build-using-namespace): the fake world

request ask(const ids& prompt, int64_t max_tokens, uint32_t n_top = 3, uint32_t n = 1) {
  request r = world::ask(prompt, max_tokens, n);
  r.prompt_logprobs = n_top;
  return r;
}

void expect_scores(const collector& got, const ids& prompt, const step_limits& most,
                   uint32_t n_top = 3) {
  const auto& scores = got.choices[0].prompt;
  ASSERT_EQ(scores.size(), prompt.size());
  std::vector<float> row(most.n_vocab);
  std::string text;
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    EXPECT_EQ(scores[i].token, prompt[i]) << i;
    EXPECT_EQ(scores[i].choice, 0U);
    text += scores[i].text;
    if (i == 0) {
      EXPECT_EQ(scores[0].logprobs.chosen, 0);
      EXPECT_TRUE(scores[0].logprobs.largest.empty());
      continue;
    }
    fill_row(hash_of(std::span(prompt).first(i), most), row);
    generate::token_logprobs expected;
    generate::find_logprobs(row, prompt[i], n_top, expected);
    EXPECT_EQ(scores[i].logprobs.chosen, expected.chosen) << i;
    ASSERT_EQ(scores[i].logprobs.largest.size(), n_top);
    EXPECT_EQ(scores[i].logprobs.largest[0].id, expected.largest[0].id) << i;
  }
  tokenizer::utf8_stream characters;
  std::string whole = characters.push(*words().decode(prompt, false));
  whole += characters.finish();
  EXPECT_EQ(text, whole);
}

TEST(prompt_logprobs, are_those_of_each_row_whatever_runs_beside_them) {
  for (const char* kind : {"blocks", "states", "window"})
    for (const uint32_t max_outputs : {1U, 3U, 8U, 64U}) {
      SCOPED_TRACE(std::string(kind) + " " + std::to_string(max_outputs));
      step_limits most = small_limits();
      most.max_outputs = max_outputs;
      if (std::string_view(kind) == "states") most.n_states = 9;
      if (std::string_view(kind) == "window") most.window = 100;
      world w(most);
      std::vector<world::given> all;
      const auto prompt = [](uint32_t i) { return some_tokens(1 + 23 * i, i); };
      for (uint32_t i = 0; i < 9; ++i)
        all.push_back(w.submit(i % 3 == 2 ? world::ask(prompt(i), 9) : ask(prompt(i), 9)));
      w.run();
      for (uint32_t i = 0; i < 9; ++i) {
        const auto& got = all[i].got->choices[0];
        ASSERT_EQ(got.ends, 1) << i;
        EXPECT_EQ(got.last.what, event::kind::end) << got.last.why.message;
        const auto wanted = alone(prompt(i), world::ask(prompt(i), 9).generation, 0, most);
        EXPECT_EQ(got.tokens, wanted.tokens) << i;
        if (i % 3 == 2)
          EXPECT_TRUE(got.prompt.empty());
        else
          expect_scores(*all[i].got, prompt(i), most);
      }
      w.expect_empty();
    }
}

TEST(prompt_logprobs, come_also_where_no_token_is_generated_and_of_a_single_token) {
  for (const std::size_t n : {1U, 2U, 100U})
    for (const int64_t max_tokens : {0, 1})
      for (const uint32_t n_choices : {1U, 3U}) {
        SCOPED_TRACE(fmt::format("{} {} {}", n, max_tokens, n_choices));
        world w;
        const ids prompt = some_tokens(n, 4);
        const auto one = w.submit(ask(prompt, max_tokens, 3, n_choices));
        w.run();
        expect_scores(*one.got, prompt, w.most);
        for (const auto& c : one.got->choices) {
          EXPECT_EQ(c.last.stop_reason, BITNET_STOP_LENGTH);
          EXPECT_EQ(c.tokens.size(), static_cast<std::size_t>(max_tokens));
        }
        w.expect_empty();
      }
}

TEST(prompt_logprobs, read_no_prefix_and_make_one_known) {
  world w;
  const ids prompt = some_tokens(200, 3);
  for (const uint64_t known : {0U, 0U}) {
    const auto one = w.submit(ask(prompt, 2));
    w.run();
    EXPECT_EQ(one.got->choices[0].last.used.cached_tokens, known);
    expect_scores(*one.got, prompt, w.most);
  }
  const auto other = w.submit(world::ask(prompt, 2));
  w.run();
  EXPECT_EQ(other.got->choices[0].last.used.cached_tokens, 192U);
}

TEST(prompt_logprobs, of_what_is_preempted_or_moved_are_delivered_once) {
  step_limits most = small_limits();
  most.max_sequences = 1;
  world w(most);
  const ids prompt = some_tokens(300, 3);
  const auto low = w.submit(ask(prompt, 3));
  w.engine->tick();
  w.engine->tick();
  request urgent = world::ask(some_tokens(100, 4), 2);
  urgent.priority = 9;
  w.submit(std::move(urgent));
  w.engine->tick();
  w.engine->replace(w.new_runner());
  w.run();
  expect_scores(*low.got, prompt, most);
  EXPECT_GT(low.got->choices[0].last.used.recomputed_tokens, 0U);
  w.expect_empty();
}

TEST(prompt_logprobs, wait_for_a_reader_that_is_slow) {
  world w;
  const ids prompt = some_tokens(90, 5);
  const auto one = w.submit(ask(prompt, 4));
  for (int i = 0; i < 1000 && !one.got->is_over(); ++i) {
    one.got->room = 2;
    w.engine->ready(one.id);
    w.run();
  }
  expect_scores(*one.got, prompt, w.most);
  EXPECT_EQ(one.got->choices[0].tokens.size(), 4U);
}

TEST(prompt_logprobs, that_cannot_be_are_rejected) {
  world w;
  EXPECT_EQ(w.engine->submit(ask(some_tokens(5, 1), 1, 21)).error().why,
            rejection::reason::invalid);
  request embeds = ask(some_tokens(5, 1), 0);
  embeds.embeds = generate::pooling::last;
  EXPECT_EQ(w.engine->submit(std::move(embeds)).error().why, rejection::reason::invalid);
}

// A row that is broken fails the request, and names the token.
TEST(prompt_logprobs, of_rows_that_are_no_numbers_fail) {
  generate::prompt_scores scores(0);
  const ids prompt{1, 2, 3};
  ASSERT_TRUE(scores.take(words(), prompt, nullptr));
  std::vector<float> row(words().size());
  row[4] = std::numeric_limits<float>::quiet_NaN();
  const generate::logits_row bad{row, {}, {}};
  const auto got = scores.take(words(), prompt, &bad);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().status, BITNET_INTERNAL);
  EXPECT_NE(got.error().message.find("behind token 0 of the prompt the model's logit of token 4"),
            std::string::npos)
      << got.error().message;
}

}  // namespace
}  // namespace bitnet::schedule
