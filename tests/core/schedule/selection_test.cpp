// Requests of whose choices only the best are delivered: which these are is computed here by rows
// of whole histories, without a scheduler.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "generate/text_tokens.hpp"
#include "grammar/gbnf.hpp"
#include "schedule/selection.hpp"
#include "small_world.hpp"

namespace bitnet::schedule {
namespace {

using namespace testing_support;  // NOLINT(google-build-using-namespace): the fake world

generate::options warm(int64_t max_tokens = 12) {
  generate::options o;
  o.max_tokens = max_tokens;
  o.sampling.temperature = 1.5F;
  o.sampling.top_k = 0;
  o.sampling.top_p = 1;
  o.sampling.seed = 5;
  return o;
}

// Of the tokens behind the prompt, by the definition of softmax.
double mean_logprob_of(ids history, const ids& tokens, const step_limits& most) {
  if (tokens.empty()) return 0;
  std::vector<float> row(most.n_vocab);
  double sum = 0;
  for (const int32_t token : tokens) {
    fill_row(hash_of(history, most), row);
    double all = 0;
    for (const float logit : row) all += std::exp(double{logit});
    sum += double{row[static_cast<std::size_t>(token)]} - std::log(all);
    history.push_back(token);
  }
  return sum / static_cast<double>(tokens.size());
}

struct ranked {
  uint32_t choice;
  expected_choice what;
  double mean;
};

// All choices, the best first.
std::vector<ranked> rank(const ids& prompt, const generate::options& o, uint32_t n,
                         const step_limits& most) {
  std::vector<ranked> out;
  for (uint32_t i = 0; i < n; ++i) {
    auto what = alone(prompt, o, i, most);
    const double mean = mean_logprob_of(prompt, what.tokens, most);
    out.push_back({i, std::move(what), mean});
  }
  std::ranges::sort(out, {}, [](const ranked& r) { return std::pair(-r.mean, r.choice); });
  return out;
}

// Notes the events in the order in which they come.
class noting final : public sink {
 public:
  bool offer(event&& e) override {
    const bool is_end = e.what != event::kind::piece;
    if (!is_end && room == 0) return false;
    if (!is_end) --room;
    all.push_back(std::move(e));
    return true;
  }
  [[nodiscard]] std::size_t n_ends() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(all, [](const event& e) { return e.what != event::kind::piece; }));
  }

  std::vector<event> all;
  std::size_t room = SIZE_MAX;
};

class selecting : public ::testing::Test {
 protected:
  std::shared_ptr<noting> submit(world& w, const ids& prompt, generate::options o, uint32_t n,
                                 uint32_t n_best) {
    request r;
    r.prompt = prompt;
    r.generation = std::move(o);
    r.n = n;
    r.n_best = n_best;
    auto got = std::make_shared<noting>();
    r.events = got;
    auto t = w.engine->submit(std::move(r));
    EXPECT_TRUE(t) << t.error().what.message;
    id_ = t.value_or(0);
    return got;
  }
  // The events of the first `n_best` of `want`, one choice behind the other.
  static void expect_best(const noting& got, const std::vector<ranked>& want, uint32_t n_best) {
    auto at = got.all.begin();
    for (uint32_t place = 0; place < n_best; ++place) {
      const ranked& one = want[place];
      SCOPED_TRACE(::testing::Message() << "place " << place << ", choice " << one.choice);
      ids tokens;
      std::string text;
      while (at != got.all.end() && at->what == event::kind::piece) {
        EXPECT_EQ(at->choice, one.choice);
        EXPECT_EQ(at->delivered_index, place);
        if (at->token >= 0) tokens.push_back(at->token);
        text += at->text;
        ++at;
      }
      ASSERT_NE(at, got.all.end());
      EXPECT_EQ(at->what, event::kind::end);
      EXPECT_EQ(at->choice, one.choice);
      EXPECT_EQ(at->delivered_index, place);
      EXPECT_EQ(tokens, one.what.tokens);
      EXPECT_EQ(text, one.what.text);
      EXPECT_EQ(at->stop_reason, one.what.stop_reason);
      EXPECT_NEAR(at->mean_logprob, one.mean, 1e-9);
      EXPECT_EQ(at->used.generated_tokens, one.what.tokens.size());
      ++at;
    }
    EXPECT_EQ(at, got.all.end()) << "no event of another choice";
  }

  ticket id_ = 0;
};

TEST_F(selecting, delivers_those_with_the_highest_mean_log_probability) {
  const struct {
    uint32_t n, n_best;
    int64_t max_tokens;
    bool ignore_end;
    const char* why;
  } rows[] = {
      {2, 1, 12, true, "the better one of two"},
      {8, 1, 12, true, "as many as a step has"},
      {8, 3, 12, false, "some end earlier than others, and are no better for it"},
      {20, 5, 7, true, "more than run at a time"},
      {20, 19, 7, true, "all but the worst"},
      {6, 2, 1, true, "of one token"},
      {6, 2, 0, true, "of none: the first ones"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    world w;
    const ids prompt = some_tokens(70, 3);
    generate::options o = warm(row.max_tokens);
    o.ignore_end = row.ignore_end;
    const auto got = submit(w, prompt, o, row.n, row.n_best);
    const auto other = w.submit(some_tokens(30, 4), 20);
    w.run();
    expect_best(*got, rank(prompt, o, row.n, w.most), row.n_best);
    EXPECT_TRUE(other.got->is_over());
    w.expect_empty();
    const statistics c = w.engine->counted();
    EXPECT_EQ(std::accumulate(c.ended.begin(), c.ended.end(), uint64_t{0}), row.n + 1)
        << "what is not delivered has ended all the same";
    for (const event& e : got->all) {
      EXPECT_TRUE(e.logprobs.largest.empty());
      if (e.what == event::kind::piece) {
        EXPECT_EQ(e.logprobs.chosen, 0) << "none were asked for";
      }
    }
  }
}

TEST_F(selecting, says_nothing_until_all_have_ended) {
  world w;
  const auto got = submit(w, some_tokens(20, 1), warm(), 3, 1);
  while (w.engine->counted().blocks_used != 0 || w.engine->counted().steps == 0) {
    EXPECT_TRUE(got->all.empty());
    if (!w.engine->tick()) break;
  }
  EXPECT_EQ(got->n_ends(), 1U);
}

TEST_F(selecting, shows_log_probabilities_where_they_were_asked_for) {
  world w;
  generate::options o = warm();
  o.logprobs = true;
  o.n_logprobs = 3;
  const auto got = submit(w, some_tokens(20, 1), o, 4, 2);
  w.run();
  EXPECT_EQ(got->n_ends(), 2U);
  double sum = 0;
  std::size_t n = 0;
  for (const event& e : got->all) {
    if (e.what != event::kind::piece) {
      EXPECT_NEAR(e.mean_logprob, sum / static_cast<double>(n), 1e-12);
      sum = 0, n = 0;
    } else if (e.token >= 0) {
      EXPECT_EQ(e.logprobs.largest.size(), 3U);
      EXPECT_LT(e.logprobs.chosen, 0);
      sum += e.logprobs.chosen;
      ++n;
    }
  }
}

// The reader takes its time; what it did not take is delivered later, in the same order.
TEST_F(selecting, waits_for_a_slow_reader) {
  world w;
  const ids prompt = some_tokens(70, 3);
  const auto got = submit(w, prompt, warm(), 4, 2);
  got->room = 3;
  w.run();
  EXPECT_EQ(got->all.size(), 3U);
  for (int i = 0; i < 20; ++i) {
    got->room = 2;
    w.engine->ready(id_);
    w.run();
  }
  expect_best(*got, rank(prompt, warm(), 4, w.most), 2);
  w.expect_empty();
  const statistics c = w.engine->counted();
  EXPECT_EQ(std::accumulate(c.ended.begin(), c.ended.end(), uint64_t{0}), 4U);
}

// What was selected is not lost where the reader comes too late for some of it.
TEST_F(selecting, fails_what_a_reader_did_not_take) {
  options o;
  o.sink_patience = std::chrono::seconds(5);
  world w(small_limits(), o);
  const auto got = submit(w, some_tokens(70, 3), warm(), 4, 2);
  got->room = 14;  // of two answers of 12 tokens
  w.run();
  w.clock.now += std::chrono::seconds(5);
  w.run();
  ASSERT_EQ(got->n_ends(), 2U);
  const auto first_end = std::ranges::find_if_not(
      got->all, [](const event& e) { return e.what == event::kind::piece; });
  EXPECT_EQ(first_end->what, event::kind::end);
  EXPECT_EQ(first_end->delivered_index, 0U);
  EXPECT_EQ(got->all.back().what, event::kind::failed);
  EXPECT_EQ(got->all.back().why.status, BITNET_TIMEOUT);
  EXPECT_EQ(got->all.back().delivered_index, 1U);
  const statistics c = w.engine->counted();
  EXPECT_EQ(std::accumulate(c.ended.begin(), c.ended.end(), uint64_t{0}) + c.failed, 4U);
  w.expect_empty();
}

TEST_F(selecting, that_is_ended_before_gives_ends_alone) {
  const struct {
    const char* why;
    std::function<void(world&, ticket)> act;
    bitnet_status failed;  // BITNET_OK: its choices end as cancelled
  } rows[] = {
      {"cancelled", [](world& w, ticket t) { w.engine->cancel(t); }, BITNET_OK},
      {"past its deadline", [](world& w, ticket) { w.clock.now += std::chrono::hours(2); },
       BITNET_TIMEOUT},
      {"stopped", [](world& w, ticket) { w.engine->stop(); }, BITNET_CANCELLED},
  };
  for (const auto& row : rows) {
    for (const int n_ticks : {0, 1, 12, 19}) {  // some have ended by then
      SCOPED_TRACE(::testing::Message() << row.why << " after " << n_ticks);
      world w;
      request r;
      r.prompt = some_tokens(20, 1);
      r.generation = warm(10);
      r.n = 12;  // of which eight run at a time
      r.n_best = 2;
      r.deadline = w.clock.now + std::chrono::hours(1);
      const auto got = std::make_shared<noting>();
      r.events = got;
      const auto t = w.engine->submit(std::move(r));
      ASSERT_TRUE(t);
      for (int i = 0; i < n_ticks; ++i) w.engine->tick();
      ASSERT_TRUE(got->all.empty());
      row.act(w, *t);
      w.run();
      ASSERT_EQ(got->all.size(), 2U) << "one end for each that would have been delivered";
      for (uint32_t i = 0; i < 2; ++i) {
        const event& e = got->all[i];
        EXPECT_EQ(e.delivered_index, i);
        EXPECT_EQ(e.what, row.failed == BITNET_OK ? event::kind::end : event::kind::failed);
        if (row.failed == BITNET_OK) {
          EXPECT_EQ(e.stop_reason, BITNET_STOP_CANCELLED);
        } else {
          EXPECT_EQ(e.why.status, row.failed);
        }
      }
      w.expect_empty();
      const statistics c = w.engine->counted();
      EXPECT_EQ(std::accumulate(c.ended.begin(), c.ended.end(), uint64_t{0}) + c.failed, 12U);
    }
  }
}

// A choice that fails alone stands behind all that did not.
TEST_F(selecting, delivers_failures_last) {
  for (const uint32_t n_best : {1U, 2U, 3U}) {
    selection s(n_best, 4, false);
    const double means[] = {-0.5, -3, -0.1, -2};
    for (const uint32_t i : {3U, 0U, 2U, 1U}) {
      event piece;
      piece.choice = i;
      piece.token = static_cast<int32_t>(i);
      s.add(std::move(piece));
      event last;
      last.what = i == 2 || i == 0 ? event::kind::failed : event::kind::end;
      last.choice = i;
      last.mean_logprob = means[i];
      EXPECT_EQ(s.end(std::move(last)), i == 1);
    }
    EXPECT_FALSE(s.is_over());
    const std::vector<event> all = s.take();
    EXPECT_TRUE(s.is_over());
    std::vector<uint32_t> order, dropped;
    for (const event& e : all) {
      if (e.what == event::kind::piece) {
        EXPECT_EQ(e.token, static_cast<int32_t>(e.choice));
        continue;
      }
      (e.delivered_index == event::not_delivered ? dropped : order).push_back(e.choice);
    }
    const std::vector<uint32_t> ranked = {3, 1, 2, 0};
    EXPECT_EQ(order, (std::vector<uint32_t>(ranked.begin(), ranked.begin() + n_best)));
    EXPECT_EQ(dropped, (std::vector<uint32_t>(ranked.begin() + n_best, ranked.end())));
  }
}

TEST_F(selecting, ranks_nan_last) {
  selection s(1, 3, false);
  for (const uint32_t i : {0U, 1U, 2U}) {
    event last;
    last.what = event::kind::end;
    last.choice = i;
    last.mean_logprob = i == 1 ? -7 : i == 0 ? std::nan("") : -INFINITY;
    s.end(std::move(last));
  }
  EXPECT_EQ(s.take().back().choice, 1U);
}

// Grammars end choices at any token, also the first choice before the others have begun.
TEST_F(selecting, keeps_each_to_its_grammar) {
  const auto tree = generate::text_tokens(words());
  world w;
  request r;
  r.prompt = some_tokens(100, 1);
  r.generation = warm();
  r.generation.ignore_end = true;
  r.n = 5;
  r.n_best = 2;
  for (int i = 0; i < 5; ++i) {
    auto parsed = grammar::parse_gbnf("root ::= [a-c] [a-c] | [d-f] [d-f] [d-f]");
    ASSERT_TRUE(parsed) << parsed.error().message;
    r.grammars.push_back(std::make_unique<grammar::guide>(*std::move(parsed), tree));
  }
  const auto got = std::make_shared<noting>();
  r.events = got;
  ASSERT_TRUE(w.engine->submit(std::move(r)));
  w.run();
  ASSERT_EQ(got->n_ends(), 2U);
  for (const event& e : got->all)
    if (e.what != event::kind::piece) {
      EXPECT_EQ(e.stop_reason, BITNET_STOP_GRAMMAR);
    }
  w.expect_empty();
}

TEST_F(selecting, is_of_at_most_as_many_as_there_are) {
  world w;
  request r = world::ask(some_tokens(10, 1), 3, 2);
  r.n_best = 3;
  const auto rejected = w.engine->submit(std::move(r));
  ASSERT_FALSE(rejected);
  EXPECT_EQ(rejected.error().why, rejection::reason::invalid);
  EXPECT_NE(rejected.error().what.message.find("the best 3 of 2 choices"), std::string::npos)
      << rejected.error().what.message;
  request all = world::ask(some_tokens(10, 1), 3, 2);
  all.n_best = 2;
  const auto got = w.submit(std::move(all));
  w.run();
  ASSERT_EQ(got.got->order.size(), 6U);
  EXPECT_NE(got.got->order[0], got.got->order[1]) << "as they come";
}

}  // namespace
}  // namespace bitnet::schedule
