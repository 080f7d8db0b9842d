// Requests that speculate give what they give without, on a device that checks each of its steps:
// whatever the drafter says, alone and among others, with a grammar, through preemption and losses.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "generate/text_tokens.hpp"
#include "grammar/gbnf.hpp"
#include "small_world.hpp"
#include "speculate/ngram.hpp"

namespace bitnet::schedule {
namespace {

using namespace testing_support;  // NOLINT(google-build-using-namespace): the fake world

// Knows the text that comes, and says what `says` makes of a token of it by its place.
class oracle final : public speculate::drafter {
 public:
  using saying = std::function<int32_t(std::size_t place, int32_t token)>;
  oracle(ids text, saying says) : text_(std::move(text)), says_(std::move(says)) {}

  result<void> propose(std::span<const int32_t> tokens, uint32_t most,
                       std::vector<int32_t>& draft) override {
    for (std::size_t i = tokens.size(); i < text_.size() && draft.size() < most; ++i)
      draft.push_back(says_(i, text_[i]));
    return {};
  }
  [[nodiscard]] const char* name() const override { return "oracle"; }

 private:
  const ids text_;
  const saying says_;
};

int32_t other_than(int32_t token) {
  return (token + 1) % 250;
}
int32_t always_right(std::size_t, int32_t token) {
  return token;
}
int32_t always_wrong(std::size_t, int32_t token) {
  return other_than(token);
}
int32_t often_right(std::size_t place, int32_t token) {
  return mix(3, place) % 4 == 0 ? other_than(token) : token;
}

struct kind {
  const char* name;
  oracle::saying says;
};
const kind kinds[] = {
    {"right", always_right}, {"wrong", always_wrong}, {"often right", often_right}};

ids text_of(const ids& prompt, const generate::options& o, const step_limits& most) {
  ids out = prompt;
  const auto answer = alone(prompt, o, 0, most);
  out.insert(out.end(), answer.tokens.begin(), answer.tokens.end());
  return out;
}

// A request whose answer the oracle knows.
request ask(const ids& prompt, generate::options o, const step_limits& most,
            const oracle::saying& says) {
  request r = world::ask(prompt, o.max_tokens);
  const ids text = text_of(prompt, o, most);
  r.generation = std::move(o);
  r.make_drafter = [=] { return std::make_unique<oracle>(text, says); };
  return r;
}

generate::options options_of(int64_t max_tokens, float temperature = 0, uint32_t seed = 0) {
  generate::options o;
  o.max_tokens = max_tokens;
  o.ignore_end = true;
  o.sampling.temperature = temperature;
  o.sampling.seed = seed;
  return o;
}

// What a step takes, long beside what a drafter does; a drafted token costs one per cent of it.
void set_times(fake_runner& r) {
  r.base = std::chrono::milliseconds(100);
  r.per_token = std::chrono::milliseconds(1);
}

step_limits limits_of(std::string_view device) {
  step_limits most = small_limits();
  most.max_outputs = 40;
  if (device == "states") most.n_states = 18;
  if (device == "few states") most.n_states = 9;
  if (device == "window") {
    most.window = 40;
    most.window_keep = 4;
  }
  return most;
}
const char* const devices[] = {"blocks", "states", "few states", "window"};

void expect_same(const collector::choice& got, const expected_choice& want) {
  EXPECT_EQ(got.tokens, want.tokens);
  EXPECT_EQ(got.text, want.text);
  EXPECT_EQ(got.last.stop_reason, want.stop_reason);
  EXPECT_EQ(got.last.used.generated_tokens, want.tokens.size());
}

TEST(speculation, drafts_do_not_change_a_text) {
  for (const char* device : devices)
    for (const kind& k : kinds)
      for (const float temperature : {0.0F, 1.0F}) {
        SCOPED_TRACE(std::string(device) + ", " + k.name);
        const step_limits most = limits_of(device);
        world w(most);
        set_times(*w.runner);
        const auto o = options_of(100, temperature, 5);
        const ids prompt = some_tokens(70, 1);
        const auto one = w.submit(ask(prompt, o, most, k.says));
        const int ticks = w.run();
        expect_same(one.got->choices[0], alone(prompt, o, 0, most));
        const usage& used = one.got->choices[0].last.used;
        if (k.name == std::string_view("right")) {
          EXPECT_EQ(used.accepted_tokens, used.drafted_tokens);
          EXPECT_LT(ticks, 30) << "100 tokens in drafts of up to 16";
        }
        if (k.name == std::string_view("wrong")) {
          EXPECT_EQ(used.accepted_tokens, 0U);
          EXPECT_GT(used.drafted_tokens, 0U);
        }
        w.expect_empty();
      }
}

TEST(speculation, sampled_texts_of_a_hundred_seeds_are_the_same) {
  const step_limits most = limits_of("blocks");
  uint64_t accepted = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    world w(most);
    set_times(*w.runner);
    const auto o = options_of(16, 1, seed);
    const ids prompt = some_tokens(9, seed);
    const auto one = w.submit(ask(prompt, o, most, often_right));
    w.run();
    expect_same(one.got->choices[0], alone(prompt, o, 0, most));
    accepted += one.got->choices[0].last.used.accepted_tokens;
  }
  EXPECT_GT(accepted, 300U);
}

// Sixteen at once, of which some draft and some do not, on a device that has no room for all.
TEST(speculation, among_others_each_text_is_its_own) {
  for (const char* device : devices) {
    SCOPED_TRACE(device);
    const step_limits most = limits_of(device);
    world w(most);
    set_times(*w.runner);
    std::vector<world::given> all;
    const auto asked = [](uint32_t i) {
      return options_of(20 + 2 * i, i % 2 == 0 ? 0.0F : 1.0F, i);
    };
    for (uint32_t i = 0; i < 16; ++i) {
      request r = ask(some_tokens(20 + 5 * i, i), asked(i), most, kinds[i % 3].says);
      if (i % 4 == 3) r.make_drafter = {};
      all.push_back(w.submit(std::move(r)));
    }
    w.run();
    for (uint32_t i = 0; i < 16; ++i)
      expect_same(all[i].got->choices[0], alone(some_tokens(20 + 5 * i, i), asked(i), 0, most));
    EXPECT_GT(w.engine->counted().speculated.accepted, 50U);
    const statistics c = w.engine->counted();
    EXPECT_GE(c.speculated.drafted, c.speculated.accepted);
    EXPECT_EQ(std::accumulate(c.accepted_at.begin(), c.accepted_at.end(), uint64_t{0}),
              c.speculated.accepted);
    EXPECT_TRUE(std::ranges::is_sorted(c.accepted_at, std::greater{}));
    EXPECT_LE(c.accepted_at.front(), c.speculated.steps);
    w.expect_empty();
  }
}

// A draft that reaches beyond the last token would need blocks that were not reserved, and would
// give more tokens than were asked for: answers of every length end where they are to.
TEST(speculation, an_answer_ends_within_a_draft) {
  for (const char* device : devices)
    for (int64_t n = 1; n < 24; ++n) {
      step_limits most = limits_of(device);
      const uint64_t tokens = 60 + static_cast<uint64_t>(n) - 1;
      if (most.window == 0) most.n_blocks = kv::blocks_for(tokens);  // none more than it needs
      world w(most);
      set_times(*w.runner);
      const auto one = w.submit(ask(some_tokens(60, 1), options_of(n), most, always_right));
      w.run();
      expect_same(one.got->choices[0], alone(some_tokens(60, 1), options_of(n), 0, most));
      w.expect_empty();
    }
}

TEST(speculation, the_context_may_end_within_a_draft) {
  step_limits most = limits_of("blocks");
  most.n_context = 130;
  world w(most);
  set_times(*w.runner);
  const auto one = w.submit(ask(some_tokens(60, 1), options_of(-1), most, always_right));
  w.run();
  EXPECT_EQ(one.got->choices[0].last.stop_reason, BITNET_STOP_CONTEXT);
  EXPECT_EQ(one.got->choices[0].tokens, alone(some_tokens(60, 1), options_of(-1), 0, most).tokens);
}

TEST(speculation, stop_strings_tokens_and_logprobs_are_those_without) {
  const step_limits most = limits_of("blocks");
  const ids prompt = some_tokens(30, 4);
  const auto plain = alone(prompt, options_of(40), 0, most);
  for (std::size_t at = 1; at < 30; at += 4) {
    auto by_token = options_of(40);
    by_token.stop_tokens = {plain.tokens[at]};
    auto by_string = options_of(40);
    by_string.stop_strings = {words().decode(std::span(plain.tokens).subspan(at, 2), true).value()};
    for (auto& o : {by_token, by_string}) {
      world w(most);
      set_times(*w.runner);
      request r = ask(prompt, options_of(40), most, always_right);
      r.generation = o;
      r.generation.logprobs = true;
      r.generation.n_logprobs = 2;
      request without = world::ask(prompt, 40);
      without.generation = r.generation;
      const auto one = w.submit(std::move(r));
      const auto other = w.submit(std::move(without));
      w.run();
      expect_same(one.got->choices[0], alone(prompt, o, 0, most));
      const auto& got = one.got->choices[0].logprobs;
      const auto& want = other.got->choices[0].logprobs;
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].chosen, want[i].chosen);
    }
  }
}

TEST(speculation, a_grammar_and_penalties_choose_as_without) {
  const auto tree = generate::text_tokens(words());
  const auto guide = [&] {
    return std::make_unique<grammar::guide>(
        *grammar::parse_gbnf("root ::= ([a-z]+ \" \" [0-9] [0-9]? \",\")+"), tree);
  };
  const step_limits most = limits_of("blocks");
  for (const kind& k : kinds)
    for (const float penalty : {1.0F, 1.3F}) {
      SCOPED_TRACE(k.name);
      auto o = options_of(60, 1, 3);
      o.sampling.repeat_penalty = penalty;
      o.sampling.top_k = 20;
      const ids prompt = some_tokens(20, 2);
      const auto own = guide();
      o.grammar = own.get();
      const auto want = alone(prompt, o, 0, most);
      o.grammar = nullptr;
      world w(most);
      set_times(*w.runner);
      request r = world::ask(prompt, 60);
      r.generation = o;
      r.grammars.push_back(guide());
      ids text = prompt;
      text.insert(text.end(), want.tokens.begin(), want.tokens.end());
      r.make_drafter = [&] { return std::make_unique<oracle>(text, k.says); };
      const auto one = w.submit(std::move(r));
      w.run();
      expect_same(one.got->choices[0], want);
    }
}

TEST(speculation, preempted_lost_and_failed_steps_change_no_text) {
  for (const char* device : {"blocks", "states", "window"}) {
    SCOPED_TRACE(device);
    const step_limits most = limits_of(device);
    options how;
    how.max_running = 3;
    world* at = nullptr;
    how.on_loss = [&](const failure&) -> result<std::unique_ptr<step_runner>> {
      auto next = at->new_runner();
      set_times(*next);
      return next;
    };
    world w(most, how);
    at = &w;
    set_times(*w.runner);
    std::vector<world::given> all;
    for (uint32_t i = 0; i < 8; ++i) {
      request r = ask(some_tokens(40, i), options_of(60, 1, i), most, kinds[i % 3].says);
      r.priority = static_cast<int32_t>(i) * 100;  // each preempts those before
      all.push_back(w.submit(std::move(r)));
      for (int t = 0; t < 6; ++t) w.engine->tick();
      if (i == 3) w.runner->fails = [](auto) { return failure{BITNET_DEVICE_LOST, "gone"}; };
      int n_failed = 0;
      if (i == 6)
        w.runner->fails = [=](std::span<const slice> s) mutable -> std::optional<failure> {
          if (s.size() == 1 || n_failed++ > 2) return std::nullopt;
          return failure{BITNET_INTERNAL, "this step failed"};
        };
    }
    w.run();
    EXPECT_GT(w.engine->counted().preemptions, 0U);
    EXPECT_EQ(w.engine->counted().runners_lost, 1U);
    EXPECT_GT(w.engine->counted().failed_steps, 1U);
    EXPECT_GT(w.engine->counted().speculated.accepted, 20U);
    for (uint32_t i = 0; i < 8; ++i)
      expect_same(all[i].got->choices[0], alone(some_tokens(40, i), options_of(60, 1, i), 0, most));
    w.expect_empty();
  }
}

TEST(speculation, choices_of_a_prompt_draft_each_for_itself) {
  for (const char* device : devices) {
    const step_limits most = limits_of(device);
    world w(most);
    set_times(*w.runner);
    const ids prompt = some_tokens(40, 8);
    request r = ask(prompt, options_of(50, 1, 8), most, always_right);
    r.n = 3;
    r.events = std::make_shared<collector>(3);
    const auto three = w.submit(std::move(r));
    w.run();
    for (uint32_t i = 0; i < 3; ++i)
      expect_same(three.got->choices[i], alone(prompt, options_of(50, 1, 8), i, most));
    w.expect_empty();
  }
}

TEST(speculation, a_drafter_that_fails_ends_the_drafts_and_is_reported) {
  class broken final : public speculate::drafter {
   public:
    result<void> propose(std::span<const int32_t>, uint32_t, std::vector<int32_t>& draft) override {
      draft.push_back(3);
      return fail(BITNET_OUT_OF_MEMORY, "no memory for the draft model");
    }
    [[nodiscard]] const char* name() const override { return "broken"; }
  };
  const step_limits most = limits_of("blocks");
  world w(most);
  set_times(*w.runner);
  request r = world::ask(some_tokens(20, 1), 30);
  r.generation = options_of(30);
  r.make_drafter = [] { return std::make_unique<broken>(); };
  const auto one = w.submit(std::move(r));
  w.run();
  expect_same(one.got->choices[0], alone(some_tokens(20, 1), options_of(30), 0, most));
  EXPECT_EQ(w.engine->counted().drafters_failed, 1U);
  EXPECT_EQ(w.engine->counted().drafter_failure, "no memory for the draft model");
  EXPECT_EQ(one.got->choices[0].last.used.drafted_tokens, 0U);
}

// Where a drafted token costs as much as a step, drafts that fail are tried now and then only.
TEST(speculation, drafts_that_cost_time_are_paused) {
  const step_limits most = limits_of("blocks");
  const auto time_of = [&](const oracle::saying& says) {
    world w(most);
    w.runner->base = w.runner->per_token = std::chrono::milliseconds(100);
    request r = ask(some_tokens(20, 1), options_of(450), most, says);
    if (!says) r.make_drafter = {};
    const auto start = w.clock.now;
    w.submit(std::move(r));
    w.run();
    return std::chrono::duration<double>(w.clock.now - start).count();
  };
  const double plain = time_of({});
  EXPECT_LT(time_of(always_wrong), plain * 1.03);
  EXPECT_LT(time_of(always_right), plain * 1.03) << "nor do right ones pay there";
}

// The tokens behind the prompt are the same each time, as in a text that repeats itself.
TEST(speculation, a_look_up_finds_what_came_before) {
  speculate::ngram by(3);
  ids text = {1, 2, 3, 4, 5, 6, 9, 9, 1, 2, 3};
  std::vector<int32_t> draft;
  ASSERT_TRUE(by.propose(text, 4, draft));
  EXPECT_EQ(draft, (ids{4, 5, 6, 9}));
  draft.clear();
  text.push_back(7);
  ASSERT_TRUE(by.propose(text, 4, draft));
  EXPECT_TRUE(draft.empty()) << "2 3 7 never came before";
}

}  // namespace
}  // namespace bitnet::schedule
