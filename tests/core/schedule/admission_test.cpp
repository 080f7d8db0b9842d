#include "schedule/admission.hpp"

#include <gtest/gtest.h>

#include "small_world.hpp"

namespace bitnet::schedule {
namespace {

using namespace testing_support;  // NOLINT(google-build-using-namespace): small limits
using reason = rejection::reason;
using std::chrono::seconds;

request asks(std::size_t n_prompt, int64_t max_tokens, uint32_t n = 1) {
  request r;
  r.prompt.assign(n_prompt, 7);
  r.generation.max_tokens = max_tokens;
  r.n = n;
  r.events = std::make_shared<collector>(n);
  return r;
}

TEST(admission, a_request_that_could_never_run_is_rejected_with_the_numbers) {
  gate by{small_limits(), 4, 2, 100};
  by.most.n_blocks = 4;  // 256 tokens; the context has 512
  const auto with = [](request r, const auto& change) {
    change(r);
    return r;
  };
  const struct {
    request asked;
    std::optional<reason> want;
    const char* text;  // that the message has in it
    const char* why;
  } rows[] = {
      {asks(10, 10), std::nullopt, "", "right"},
      {asks(0, 10), reason::invalid, "no token", "an empty prompt"},
      {asks(10, 10, 0), reason::invalid, "1 to 4 choices; this one asks for 0", "no choice"},
      {asks(10, 10, 5), reason::invalid, "asks for 5", "too many choices"},
      {with(asks(10, 1), [](request& r) { r.prompt[3] = -1; }), reason::invalid,
       "token 3 of the prompt is -1", "no id"},
      {with(asks(10, 1), [](request& r) { r.prompt[9] = 1 << 30; }), reason::invalid,
       "token 9 of the prompt is 1073741824", "an id behind the vocabulary"},
      {with(asks(10, 1), [](request& r) { r.events = nullptr; }), reason::invalid, "no sink",
       "no place for the reason"},
      {with(asks(10, 1, 2), [](request& r) { r.seeds = {1}; }), reason::invalid,
       "2 choices need 2 seeds or none; there are 1", "a seed for one of two"},
      {with(asks(10, 1, 2), [](request& r) { r.grammars.resize(1); }), reason::invalid,
       "there are 1", "a grammar for one of two"},
      {with(asks(10, 1, 2), [](request& r) { r.grammars.resize(2); }), reason::invalid, "null",
       "no guide in its place"},
      {asks(511, 1), reason::too_large, "511 tokens", "it fits the context, not the pool"},
      {asks(512, 1), reason::too_long, "has 512 tokens, and the context 512",
       "no room for an answer"},
      {asks(200, 57), std::nullopt, "", "256 tokens: the last that is sampled needs no place"},
      {asks(200, 58), reason::too_large,
       "257 tokens of the prompt and the answer need 5 blocks of 64 tokens, and the pool has 4",
       "one more"},
      {asks(200, -1), reason::too_large, "512 tokens", "up to the end of the context"},
      {asks(256, 0), std::nullopt, "", "a prompt alone"},
      {asks(10, INT64_MAX), reason::too_large, "512 tokens", "no overflow"},
  };
  for (const auto& row : rows) {
    const auto got = find_fault(row.asked, by);
    ASSERT_EQ(got.has_value(), row.want.has_value()) << row.why;
    if (!got) continue;
    EXPECT_EQ(got->why, *row.want) << row.why;
    EXPECT_NE(got->what.message.find(row.text), std::string::npos) << got->what.message;
  }
}

TEST(admission, the_queue_is_bounded_by_requests_and_by_tokens) {
  const gate by{small_limits(), 4, 3, 100};
  const struct {
    std::size_t n_prompt;
    uint64_t n_waiting, n_tokens;
    std::optional<reason> want;
    bitnet_status status;
    const char* text;
    const char* why;
  } rows[] = {
      {10, 0, 0, std::nullopt, 0, "", "no request waits"},
      {10, 2, 90, std::nullopt, 0, "", "the last one"},
      {10, 3, 30, reason::requests_waiting, BITNET_BUSY, "3 requests wait, and at most 3 may",
       "too many requests"},
      {11, 2, 90, reason::tokens_waiting, BITNET_BUSY,
       "prompts of 90 tokens wait, and at most 100 may: 11 more", "too many tokens"},
      {500, 0, 0, std::nullopt, 0, "", "a prompt that is longer than the bound comes in alone"},
      {500, 1, 1, reason::tokens_waiting, BITNET_BUSY, "500 more", "not beside another"},
  };
  for (const auto& row : rows) {
    const auto got = find_overload(row.n_prompt, row.n_waiting, row.n_tokens, by);
    ASSERT_EQ(got.has_value(), row.want.has_value()) << row.why;
    if (!got) continue;
    EXPECT_EQ(got->why, *row.want) << row.why;
    EXPECT_EQ(got->what.status, row.status) << row.why;
    EXPECT_NE(got->what.message.find(row.text), std::string::npos) << got->what.message;
  }
}

TEST(admission, a_window_bounds_the_blocks) {
  const struct {
    uint64_t tokens;
    uint32_t window, keep, max_tokens, want;
    const char* why;
  } rows[] = {
      {6400, 0, 0, 512, 100, "no window: all tokens"},
      {6400, 64, 0, 512, 3, "the window, a chunk as large, and one for the borders"},
      {6400, 64, 4, 512, 4, "and what is kept"},
      {6400, 640, 0, 64, 12, "704 tokens, and one"},
      {100, 640, 0, 64, 2, "a short sequence has no more than it needs"},
  };
  for (const auto& row : rows) {
    step_limits most = small_limits();
    most.window = row.window;
    most.window_keep = row.keep;
    most.max_tokens = row.max_tokens;
    EXPECT_EQ(most_blocks_of(row.tokens, most), row.want) << row.why;
  }
}

// Sequences that are only names here.
sequence* named(uintptr_t n) {
  return reinterpret_cast<sequence*>(n * 64);
}

TEST(admission, the_order_is_priority_and_age_then_fairness_then_arrival) {
  const time_point now{std::chrono::hours(1)};
  fairness served(seconds(60));
  served.serve(1, 1000, now);
  served.serve(2, 10, now);
  const struct {
    std::vector<waiter> in;
    uint64_t want;  // arrival of the first; 0: none
    const char* why;
  } rows[] = {
      {{}, 0, "no request"},
      {{{.arrival = 1, .client = 3, .since = now}, {.arrival = 2, .client = 3, .since = now}},
       1,
       "the first that came"},
      {{{.arrival = 1, .client = 3, .since = now},
        {.arrival = 2, .client = 3, .priority = 1, .since = now}},
       2,
       "priority"},
      {{{.arrival = 1, .client = 1, .since = now}, {.arrival = 2, .client = 2, .since = now}},
       2,
       "client 1 was served more"},
      {{{.arrival = 1, .client = 2, .since = now}, {.arrival = 2, .client = 3, .since = now}},
       2,
       "client 3 was not served at all"},
      {{{.arrival = 1, .client = 1, .since = now - seconds(10)},
        {.arrival = 2, .client = 2, .since = now}},
       1,
       "an interval of waiting is a priority"},
      {{{.arrival = 1, .client = 1, .since = now - seconds(9)},
        {.arrival = 2, .client = 2, .since = now}},
       2,
       "less than one is not"},
      {{{.arrival = 1, .client = 3, .since = now - seconds(60)},
        {.arrival = 2, .client = 3, .priority = 5, .since = now}},
       1,
       "whatever the priority, waiting gets over it"},
      {{{.arrival = 1, .client = 3, .since = now - seconds(40)},
        {.arrival = 2, .client = 3, .priority = 5, .since = now}},
       2,
       "but not before"},
      {{{.arrival = 1, .client = 3, .waited = seconds(30), .since = now},
        {.arrival = 2, .client = 3, .priority = 2, .since = now}},
       1,
       "what it waited before it was preempted counts"},
      {{{.arrival = 1, .client = 3, .since = now, .may_run = false},
        {.arrival = 2, .client = 3, .since = now}},
       2,
       "whose sink is full takes no place"},
      {{{.arrival = 1, .client = 3, .since = now, .may_run = false}}, 0, "no request that may run"},
  };
  for (const auto& row : rows) {
    waiting_queue q(seconds(10), served);
    for (const waiter& w : row.in) q.add(w);
    const waiter* got = q.first(now);
    EXPECT_EQ(got == nullptr ? 0 : got->arrival, row.want) << row.why;
  }
}

TEST(admission, a_removed_request_is_not_the_next) {
  const time_point now{std::chrono::hours(1)};
  const fairness served(seconds(60));
  waiting_queue q(seconds(10), served);
  for (uintptr_t i = 1; i <= 3; ++i) q.add({.who = named(i), .arrival = i, .since = now});
  EXPECT_TRUE(q.remove(named(1)));
  EXPECT_FALSE(q.remove(named(1)));
  EXPECT_EQ(q.first(now)->who, named(2));
  q.set_may_run(named(2), false);
  EXPECT_EQ(q.first(now)->who, named(3));
  q.set_may_run(named(2), true);
  EXPECT_EQ(q.first(now)->who, named(2));
}

}  // namespace
}  // namespace bitnet::schedule
