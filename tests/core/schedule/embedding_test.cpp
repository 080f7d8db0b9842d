// Embeddings: each of many is what its tokens give alone, however they are cut into steps.
#include "generate/embedding.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "small_world.hpp"

namespace bitnet::schedule {
namespace {

using namespace testing_support;  // NOLINT(google-build-using-namespace): the fake world
using generate::pooling;
using floats = std::vector<float>;

constexpr pooling all_poolings[] = {pooling::mean, pooling::cls, pooling::last};

// By the definition, of rows that the fake device gives.
floats expected(const ids& prompt, pooling by, const step_limits& most) {
  generate::embedding e(by);
  floats row(most.n_vocab);
  const std::size_t n = by == pooling::cls ? 1 : prompt.size();
  for (std::size_t i = by == pooling::mean ? 1 : n; i <= n; ++i) {
    fill_row(hash_of(std::span(prompt).first(i), most), row);
    e.add(row);
  }
  floats out(most.n_vocab);
  EXPECT_TRUE(e.finish(out));
  return out;
}

request ask(ids prompt, pooling by) {
  request r;
  r.prompt = std::move(prompt);
  r.embeds = by;
  r.generation.max_tokens = 0;
  r.events = std::make_shared<collector>(1);
  return r;
}

// Each token of a step may have a row.
step_limits wide() {
  step_limits most = small_limits();
  most.max_outputs = most.max_tokens;
  return most;
}

TEST(embedding, each_of_many_is_what_it_is_alone) {
  for (const pooling by : all_poolings)
    for (const char* kind : {"blocks", "states", "window"}) {
      SCOPED_TRACE(std::string(generate::name_of(by)) + " " + kind);
      step_limits most = wide();
      if (std::string_view(kind) == "states") most.n_states = 9;
      if (std::string_view(kind) == "window") most.window = 100;
      world w(most);
      std::vector<world::given> all;
      const auto prompt = [](uint32_t i) { return some_tokens(1 + 17 * i, i); };
      for (uint32_t i = 0; i < 20; ++i) all.push_back(w.submit(ask(prompt(i), by)));
      w.run();
      for (uint32_t i = 0; i < 20; ++i) {
        const auto& got = all[i].got->choices[0];
        ASSERT_EQ(got.ends, 1) << i;
        EXPECT_EQ(got.last.what, event::kind::end) << got.last.why.message;
        EXPECT_EQ(got.last.stop_reason, BITNET_STOP_LENGTH);
        EXPECT_EQ(got.last.used.prompt_tokens, 1 + 17 * i);
        EXPECT_EQ(got.last.used.generated_tokens, 0U);
        EXPECT_EQ(got.last.embedding, expected(prompt(i), by, most)) << i;
        EXPECT_TRUE(got.tokens.empty() && got.text.empty());
      }
      w.expect_empty();
    }
}

TEST(embedding, a_known_prefix_is_used_where_its_rows_are_not) {
  const ids prompt = some_tokens(200, 3);
  for (const pooling by : all_poolings) {
    SCOPED_TRACE(generate::name_of(by));
    world w(wide());
    for (const uint64_t known : {uint64_t{0}, uint64_t{by == pooling::last ? 192U : 0U}}) {
      const auto one = w.submit(ask(prompt, by));
      w.run();
      EXPECT_EQ(one.got->choices[0].last.used.cached_tokens, known);
      EXPECT_EQ(one.got->choices[0].last.embedding, expected(prompt, by, w.most));
    }
    EXPECT_EQ(w.engine->counted().prefix_hits, by == pooling::last ? 192U : 0U);
  }
}

TEST(embedding, as_long_as_the_context_is_taken_and_longer_is_not) {
  world w(wide());
  const auto whole = w.submit(ask(some_tokens(512, 1), pooling::mean));
  w.run();
  EXPECT_EQ(whole.got->choices[0].last.embedding,
            expected(some_tokens(512, 1), pooling::mean, w.most));
  const auto longer = w.engine->submit(ask(some_tokens(513, 1), pooling::mean));
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().why, rejection::reason::too_long);
  EXPECT_EQ(longer.error().what.status, BITNET_CONTEXT_FULL);
  request several = ask(some_tokens(5, 1), pooling::last);
  several.n = 2;
  several.events = std::make_shared<collector>(2);
  EXPECT_EQ(w.engine->submit(std::move(several)).error().why, rejection::reason::invalid);
  request answers = ask(some_tokens(5, 1), pooling::last);
  answers.generation.max_tokens = 1;
  EXPECT_EQ(w.engine->submit(std::move(answers)).error().why, rejection::reason::invalid);
}

TEST(embedding, an_interrupted_request_restarts_its_sum) {
  const ids prompt = some_tokens(300, 3);
  for (const pooling by : all_poolings) {
    SCOPED_TRACE(generate::name_of(by));
    step_limits most = wide();
    most.max_sequences = 1;
    world w(most);
    const auto low = w.submit(ask(prompt, by));
    w.engine->tick();
    request urgent = ask(some_tokens(100, 4), by);
    urgent.priority = 9;
    const auto high = w.submit(std::move(urgent));
    w.engine->tick();
    w.engine->replace(w.new_runner());
    w.run();
    EXPECT_EQ(low.got->choices[0].last.embedding, expected(prompt, by, most));
    EXPECT_EQ(high.got->choices[0].last.embedding, expected(some_tokens(100, 4), by, most));
    w.expect_empty();
  }
}

TEST(embedding, a_step_that_fails_is_computed_again) {
  for (const uint32_t n_states : {0U, 9U}) {
    step_limits most = wide();
    most.n_states = n_states;
    world w(most);
    int steps = 0;
    w.runner->fails = [&](std::span<const slice>) -> std::optional<failure> {
      if (++steps != 2) return std::nullopt;
      return failure{BITNET_INTERNAL, "once"};
    };
    std::vector<world::given> all;
    for (uint32_t i = 0; i < 4; ++i)
      all.push_back(w.submit(ask(some_tokens(40 + i, i), pooling::mean)));
    w.run();
    for (uint32_t i = 0; i < 4; ++i)
      EXPECT_EQ(all[i].got->choices[0].last.embedding,
                expected(some_tokens(40 + i, i), pooling::mean, most));
    w.expect_empty();
  }
}

TEST(embedding, that_is_cancelled_has_no_vector) {
  world w(wide());
  const auto one = w.submit(ask(some_tokens(300, 1), pooling::mean));
  w.engine->tick();
  w.engine->cancel(one.id);
  w.run();
  EXPECT_EQ(one.got->choices[0].last.stop_reason, BITNET_STOP_CANCELLED);
  EXPECT_TRUE(one.got->choices[0].last.embedding.empty());
  w.expect_empty();
}

TEST(embedding, of_rows_that_are_no_numbers_fails) {
  generate::embedding e(pooling::mean);
  e.add(floats{1, std::numeric_limits<float>::quiet_NaN()});
  floats out(2);
  EXPECT_EQ(e.finish(out).error().status, BITNET_BAD_DATA);
  e.begin();
  e.add(floats{0, 0});
  ASSERT_TRUE(e.finish(out));
  EXPECT_EQ(out, (floats{0, 0})) << "zeros have no direction";
  e.begin();
  e.add(floats{3, 0});
  e.add(floats{3, 8});
  ASSERT_TRUE(e.finish(out));
  EXPECT_EQ(out, (floats{0.6F, 0.8F}));
}

}  // namespace
}  // namespace bitnet::schedule
