// Sessions that share a budget of keys and values.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "../demo_model.hpp"
#include "bitnet/bitnet.h"
#include "demo_fixture.hpp"

namespace {

using namespace bitnet::test;  // NOLINT(google-build-using-namespace): the fixtures

TEST_F(budgeted, evicted_sessions_compute_the_same_logits) {
  const auto ids = many(240, vocabulary());
  const auto alone = logits(session(), ids, ids.size());
  for (const uint32_t policy : {BITNET_EVICT_LRU, BITNET_EVICT_FIFO, BITNET_EVICT_LFU}) {
    limit(5, policy);  // for three sessions of four blocks each
    std::vector<bitnet_session*> all = {session(), session(), session()};
    uint64_t evicted = 0;
    for (std::size_t at = 0; at < ids.size(); at += 48) {
      for (bitnet_session* s : all) {
        const auto part = logits(
            s,
            {ids.begin() + static_cast<int64_t>(at), ids.begin() + static_cast<int64_t>(at + 48)},
            16);
        EXPECT_EQ(
            std::memcmp(part.data(), alone.data() + at * vocabulary(), part.size() * sizeof(float)),
            0)
            << "policy " << policy << ", token " << at;
      }
    }
    for (bitnet_session* s : all) evicted += evictions(s);
    EXPECT_GT(evicted, 2U) << "the budget was never spent: nothing was tested";
    // Going back, waiting tokens and closing work on evicted sessions too.
    ASSERT_EQ(bitnet_session_truncate(all[0], 100, &error_), BITNET_OK);
    const auto again = logits(all[0], {ids.begin() + 100, ids.end()}, 70);
    EXPECT_EQ(std::memcmp(again.data(), alone.data() + std::size_t{100} * vocabulary(),
                          again.size() * sizeof(float)),
              0);
    bitnet_session_close(all[1]);
    sessions_.erase(sessions_.end() - 2);
  }
}

TEST_F(budgeted, generation_is_the_same_and_windows_share_too) {
  const generated plain = generate(session(), "Once upon a time", 60, 0.9F, 5);
  limit(6, BITNET_EVICT_LRU);
  bitnet_session_options windowed;
  bitnet_session_defaults(&windowed, sizeof windowed);
  windowed.window = 64;
  windowed.n_batch = 64;
  bitnet_session* sliding = session(windowed);
  const auto ids = many(300, vocabulary());
  logits(sliding, ids, 300);
  bitnet_session* s = session();
  const generated first = generate(s, "Once upon a time", 60, 0.9F, 5);
  EXPECT_EQ(first.ids, plain.ids);
  logits(session(), many(240, vocabulary()), 240);  // takes from both
  EXPECT_GT(evictions(sliding) + evictions(s), 0U);
  ASSERT_EQ(bitnet_session_truncate(s, 0, &error_), BITNET_OK);
  EXPECT_EQ(generate(s, "Once upon a time", 60, 0.9F, 5).ids, plain.ids);
  const auto seen = logits(sliding, {ids.begin(), ids.begin() + 9}, 4);
  bitnet_session* fresh = session(windowed);
  logits(fresh, ids, 300);
  const auto expected = logits(fresh, {ids.begin(), ids.begin() + 9}, 9);
  EXPECT_EQ(std::memcmp(seen.data(), expected.data(), seen.size() * sizeof(float)), 0);
}

TEST_F(budgeted, threads_wait_for_each_other_and_end) {
  const auto ids = many(200, vocabulary());
  const auto alone = logits(session(), ids, ids.size());
  limit(4, BITNET_EVICT_LRU);  // one session's worth, for three at a time
  std::vector<bitnet_session*> all = {session(), session(), session()};
  std::vector<int> wrong(all.size(), 0);
  const uint32_t n_vocab = vocabulary();
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < all.size(); ++i)
      threads.emplace_back([&, i] {
        std::vector<float> rows(std::size_t{50} * n_vocab);
        for (std::size_t at = 0; at < ids.size(); at += 50)
          wrong[i] += bitnet_session_eval(all[i], ids.data() + at, 50, 1, rows.data(), rows.size(),
                                          nullptr) != BITNET_OK ||
                      std::memcmp(rows.data(), alone.data() + at * n_vocab,
                                  rows.size() * sizeof(float)) != 0;
      });
  }
  EXPECT_EQ(wrong, std::vector<int>(all.size(), 0));
}

TEST_F(budgeted, a_context_beyond_the_budget_is_rejected_and_an_open_one_reduced) {
  limit(3, BITNET_EVICT_LRU);
  bitnet_session_options options;
  bitnet_session_defaults(&options, sizeof options);
  bitnet_session* none = nullptr;
  options.n_context = 193;
  EXPECT_EQ(bitnet_session_open(model_, &options, &none, &error_), BITNET_OUT_OF_MEMORY);
  EXPECT_NE(std::string(error_.message).find("kv_budget_bytes"), std::string::npos)
      << error_.message;
  options.n_context = 0;
  EXPECT_EQ(bitnet_session_capacity(session(options)), 192U);
  options.kv_k = BITNET_KV_F32;
  EXPECT_EQ(bitnet_session_open(model_, &options, &none, &error_), BITNET_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("same types"), std::string::npos) << error_.message;
  limit(0, BITNET_EVICT_LRU);
  options.kv_k = BITNET_KV_F16;
  EXPECT_EQ(bitnet_session_open(model_, &options, &none, &error_), BITNET_OUT_OF_MEMORY);
  EXPECT_EQ(none, nullptr);
  bitnet_model_options wrong;
  bitnet_model_defaults(&wrong, sizeof wrong);
  wrong.kv_eviction = 3;
  bitnet_model* second = nullptr;
  EXPECT_EQ(bitnet_model_open(runtime_, demo_model().c_str(), &wrong, &second, &error_),
            BITNET_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("LRU, FIFO or LFU, found 3"), std::string::npos)
      << error_.message;
}

}  // namespace
