#pragma once
// A scheduler on a fake device, its requests, and what each of them gives when it is alone.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../tokenizer/vocabularies.hpp"
#include "fake_runner.hpp"
#include "generate/generation.hpp"
#include "schedule/scheduler.hpp"

namespace bitnet::schedule::testing_support {

using ids = std::vector<int32_t>;

inline const tokenizer::tokenizer& words() {
  static const auto t =
      tokenizer::testing_support::made(tokenizer::testing_support::bpe_vocabulary());
  return t;
}

inline step_limits small_limits() {
  step_limits most;
  most.max_tokens = 64;
  most.max_sequences = most.max_outputs = 8;
  most.n_context = 512;
  most.n_vocab = words().size();
  most.n_blocks = 64;
  return most;
}

// Tokens that no other `salt` gives.
inline ids some_tokens(std::size_t n, uint32_t salt) {
  ids out;
  uint64_t h = salt;
  for (std::size_t i = 0; i < n; ++i) {
    h = mix(h, i);
    out.push_back(static_cast<int32_t>(h % 250));
  }
  return out;
}

// Takes what comes while it has room.
class collector final : public sink {
 public:
  struct choice {
    ids tokens;
    std::string text;
    std::vector<generate::token_logprobs> logprobs;
    std::vector<event> prompt;  // its tokens
    int ends = 0;
    event last;
  };

  // Of `n` choices; of `delivered` of them where that is not 0.
  explicit collector(uint32_t n, uint32_t delivered = 0)
      : choices(n), n_delivered_(delivered == 0 ? n : delivered) {}

  bool offer(event&& e) override {
    choice& c = choices.at(e.choice);
    EXPECT_EQ(c.ends, 0) << "an event behind the end";
    if (e.what != event::kind::piece) {
      if (at_end) at_end();
      ++c.ends;
      c.last = std::move(e);
      return true;
    }
    if (room == 0) {
      rejected = true;
      return false;
    }
    --room;
    if (e.of_prompt) {
      EXPECT_TRUE(c.tokens.empty()) << "a token of the prompt behind one of the answer";
      c.prompt.push_back(std::move(e));
      return true;
    }
    c.text += e.text;
    if (e.token >= 0) {
      c.tokens.push_back(e.token);
      c.logprobs.push_back(std::move(e.logprobs));
    }
    order.push_back(e.choice);
    return true;
  }
  [[nodiscard]] bool is_over() const {
    return std::ranges::count_if(choices, [](const choice& c) { return c.ends > 0; }) ==
           n_delivered_;
  }

  std::vector<choice> choices;
  std::vector<uint32_t> order;  // of the pieces
  std::size_t room = SIZE_MAX;
  bool rejected = false;
  std::function<void()> at_end;  // of a choice, when its last event comes

 private:
  const std::ptrdiff_t n_delivered_;
};

// What a choice is to give, computed without any scheduler.
struct expected_choice {
  ids tokens;
  std::string text;
  uint32_t stop_reason = 0;
};

inline expected_choice alone(const ids& prompt, generate::options o, uint32_t index,
                             const step_limits& most) {
  o.sampling.seed += index;
  auto g =
      generate::generation::make(words(), most.n_vocab, o, prompt, most.n_context - prompt.size());
  EXPECT_TRUE(g) << g.error().message;
  expected_choice out;
  ids history = prompt;
  std::vector<float> row(most.n_vocab);
  while (true) {
    const auto wish = g->wants();
    if (!wish || !wish->more) break;
    fill_row(hash_of(history, most), row);
    const auto token = g->take({row, {}, {}});
    if (!token) break;
    history.push_back(*token);
    out.text += g->last().text;
  }
  out.text += g->finish();
  out.tokens = g->so_far().tokens;
  out.stop_reason = g->so_far().stop_reason;
  return out;
}

struct world {
  explicit world(const step_limits& limits = small_limits(), options o = {}) : most(limits) {
    o.now = [this] { return clock.now; };
    auto made = scheduler::make(new_runner(), words(), std::move(o));
    EXPECT_TRUE(made) << made.error().message;
    engine = *std::move(made);
  }

  std::unique_ptr<fake_runner> new_runner() {
    auto r = std::make_unique<fake_runner>(most, clock);
    runner = r.get();
    return r;
  }

  static request ask(ids prompt, int64_t max_tokens, uint32_t n = 1) {
    request r;
    r.prompt = std::move(prompt);
    r.generation.max_tokens = max_tokens;
    r.generation.ignore_end = true;
    r.n = n;
    r.events = std::make_shared<collector>(n);
    return r;
  }

  struct given {
    ticket id = 0;
    std::shared_ptr<collector> got;
  };
  given submit(request r) {
    auto got = std::static_pointer_cast<collector>(r.events);
    auto t = engine->submit(std::move(r));
    EXPECT_TRUE(t) << t.error().what.message;
    return {t.value_or(0), std::move(got)};
  }
  given submit(ids prompt, int64_t max_tokens, uint32_t n = 1) {
    return submit(ask(std::move(prompt), max_tokens, n));
  }

  // Until nothing is left to do; the number of ticks.
  int run(int at_most = 100000) {
    int n = 0;
    while (engine->tick()) {
      if (++n > at_most) {
        ADD_FAILURE() << "no end after " << at_most << " ticks";
        break;
      }
    }
    return n;
  }

  void expect_empty() const {
    const statistics c = engine->counted();
    EXPECT_EQ(c.running, 0U);
    EXPECT_EQ(c.waiting_new + c.waiting_preempted + c.waiting_paused, 0U);
    EXPECT_EQ(c.waiting_tokens, 0U);
    EXPECT_EQ(c.blocks_used, 0U);
    EXPECT_EQ(c.blocks_reserved, 0U);
    EXPECT_EQ(c.states_used, 0U);
  }

  step_limits most;
  fake_clock clock;
  fake_runner* runner = nullptr;  // the last that was made
  std::unique_ptr<scheduler> engine;
};

}  // namespace bitnet::schedule::testing_support
