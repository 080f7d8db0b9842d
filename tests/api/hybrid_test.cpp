// Sessions of a model whose sequences have states beside keys and values.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "../core/model/small_hybrid.hpp"
#include "../scratch_folder.hpp"
#include "bitnet/bitnet.h"
#include "demo_fixture.hpp"

namespace {

using namespace bitnet::test;  // NOLINT(google-build-using-namespace): the fixtures

// A model whose sequences have states, which cannot be cut where keys can.
class hybrid : public budgeted {
 protected:
  static constexpr uint64_t state_bytes = uint64_t{2} * (3 * 160 + 4 * 16 * 24) * 4;
  std::string model_file() override {
    return scratch_
        .write("hybrid.gguf", bitnet::tests::as_text(bitnet::tests::small_hybrid().build()))
        .native();
  }
  // Rows of `part` are those of `whole` from token `first` on.
  void expect_rows(const std::vector<float>& part, const std::vector<float>& whole,
                   std::size_t first) {
    EXPECT_EQ(
        std::memcmp(part.data(), whole.data() + first * vocabulary(), part.size() * sizeof(float)),
        0);
  }

 private:
  bitnet::test::scratch_folder scratch_;
};

TEST_F(hybrid, logits_do_not_depend_on_how_the_prompt_is_cut) {
  const auto ids = many(150, vocabulary());
  const auto whole = logits(session(), ids, ids.size());
  for (const std::size_t piece : {1U, 7U, 64U})
    expect_rows(logits(session(), ids, piece), whole, 0);
}

TEST_F(hybrid, truncating_restores_the_earlier_logits) {
  const auto ids = many(200, vocabulary());
  const auto whole = logits(session(), ids, ids.size());
  bitnet_session* s = session();
  const auto rest = [&](std::size_t from) {
    return std::vector<bitnet_token>(ids.begin() + static_cast<int64_t>(from), ids.end());
  };
  logits(s, {ids.begin(), ids.begin() + 90}, 90);
  // Steps of single tokens leave alone what the last longer evaluation kept.
  for (std::size_t i = 90; i < 100; ++i) logits(s, {ids[i]}, 1);
  logits(s, rest(100), 50);  // from here on a state is kept, then from 150
  for (const std::size_t kept : {199U, 160U, 150U, 149U, 120U, 90U, 5U, 0U}) {
    SCOPED_TRACE(kept);
    ASSERT_EQ(bitnet_session_truncate(s, kept, &error_), BITNET_OK);
    EXPECT_EQ(bitnet_session_length(s), kept);
    expect_rows(logits(s, rest(kept), 64), whole, kept);
    ASSERT_EQ(bitnet_session_truncate(s, kept, &error_), BITNET_OK);
    expect_rows(logits(s, rest(kept), 1), whole, kept);
  }
}

TEST_F(hybrid, a_cancelled_call_leaves_the_session_as_it_was) {
  const auto ids = many(120, vocabulary());
  const auto whole = logits(session(), ids, ids.size());
  for (const std::size_t before : {0U, 1U, 60U}) {
    SCOPED_TRACE(before);
    bitnet_session* s = session();
    if (before != 0) logits(s, {ids.begin(), ids.begin() + static_cast<int64_t>(before)}, 30);
    const std::vector<bitnet_token> more(ids.begin() + static_cast<int64_t>(before), ids.end());
    bitnet_session_cancel(s);
    EXPECT_EQ(bitnet_session_eval(s, more.data(), more.size(), 0, nullptr, 0, &error_),
              BITNET_CANCELLED);
    EXPECT_EQ(bitnet_session_length(s), before);
    expect_rows(logits(s, more, 25), whole, before);
  }
}

TEST_F(hybrid, a_cancelled_step_leaves_the_session_unchanged) {
  const auto ids = many(240, vocabulary());
  const auto whole = logits(session(), ids, ids.size());
  bitnet_session* s = session();
  logits(s, {ids.begin(), ids.begin() + 40}, 40);
  std::size_t stopped = 0;
  for (int delay = 0; delay < 40; ++delay) {
    std::jthread canceller([&] {
      // Another point of the step each time.
      std::this_thread::sleep_for(std::chrono::microseconds(200 * delay));
      bitnet_session_cancel(s);
    });
    stopped += bitnet_session_eval(s, ids.data() + 40, 200, 0, nullptr, 0, &error_) != BITNET_OK;
    canceller.join();
    bitnet_session_clear_cancel(s);
    ASSERT_EQ(bitnet_session_truncate(s, 40, &error_), BITNET_OK);
  }
  EXPECT_GT(stopped, 0U) << "no call was stopped: nothing was tested";
  expect_rows(logits(s, {ids.begin() + 40, ids.end()}, 64), whole, 40);
}

TEST_F(hybrid, evicted_sessions_compute_the_same_logits) {
  const auto ids = many(240, vocabulary());
  const auto alone = logits(session(), ids, ids.size());
  // Two layers with keys of one head of 32; room for one session and a half.
  constexpr uint64_t session_bytes = 2 * state_bytes + uint64_t{4} * 64 * 2 * 2 * 2 * 32;
  limit_bytes(session_bytes * 3 / 2, BITNET_EVICT_LRU);
  std::vector<bitnet_session*> all = {session(), session(), session()};
  for (std::size_t at = 0; at < ids.size(); at += 80)
    for (bitnet_session* s : all)
      expect_rows(logits(s,
                         {ids.begin() + static_cast<int64_t>(at),
                          ids.begin() + static_cast<int64_t>(at) + 80},
                         33),
                  alone, at);
  uint64_t evicted = 0;
  for (bitnet_session* s : all) evicted += evictions(s);
  EXPECT_GT(evicted, 2U) << "the budget was never spent: nothing was tested";
  ASSERT_EQ(bitnet_session_truncate(all[0], 100, &error_), BITNET_OK);
  expect_rows(logits(all[0], {ids.begin() + 100, ids.end()}, 70), alone, 100);
}

TEST_F(hybrid, a_context_beyond_what_the_first_session_left_is_rejected) {
  constexpr uint64_t block = uint64_t{64} * 2 * 2 * 2 * 32;
  limit_bytes(3 * (2 * state_bytes + block), BITNET_EVICT_LRU);
  bitnet_session* small = session(64);
  bitnet_session_options options;
  bitnet_session_defaults(&options, sizeof options);
  options.n_context = 256;
  bitnet_session* none = nullptr;
  EXPECT_EQ(bitnet_session_open(model_, &options, &none, &error_), BITNET_OUT_OF_MEMORY);
  EXPECT_NE(std::string(error_.message).find("have room for 192 tokens beside their states"),
            std::string::npos)
      << error_.message;
  const auto ids = many(60, vocabulary());
  EXPECT_EQ(logits(small, ids, 20).size(), ids.size() * vocabulary()) << "the first goes on";
}

TEST_F(hybrid, a_budget_below_its_states_is_rejected) {
  limit_bytes(state_bytes, BITNET_EVICT_LRU);
  bitnet_session_options options;
  bitnet_session_defaults(&options, sizeof options);
  bitnet_session* none = nullptr;
  EXPECT_EQ(bitnet_session_open(model_, &options, &none, &error_), BITNET_OUT_OF_MEMORY);
  EXPECT_NE(std::string(error_.message).find("use a larger kv_budget_bytes"), std::string::npos)
      << error_.message;
}

}  // namespace
