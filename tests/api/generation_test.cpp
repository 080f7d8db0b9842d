// Texts that a session generates, and what ends them.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "bitnet/bitnet.h"
#include "demo_fixture.hpp"

namespace {

using namespace bitnet::test;  // NOLINT(google-build-using-namespace): the fixtures

TEST_F(demo, same_seed_same_text_other_seed_other_text) {
  const generated a = generate(session(), "Once upon a time", 40, 1.0F, 7);
  const generated b = generate(session(), "Once upon a time", 40, 1.0F, 7);
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.ids, b.ids);
  bool differs = false;
  for (uint32_t seed = 8; seed < 12 && !differs; ++seed)
    differs = generate(session(), "Once upon a time", 40, 1.0F, seed).text != a.text;
  EXPECT_TRUE(differs);
}

TEST_F(demo, the_prompt_matters) {
  EXPECT_NE(generate(session(), "Once upon a time, there was a fox", 24, 0, 0).ids,
            generate(session(), "The moon is", 24, 0, 0).ids);
}

TEST_F(demo, a_stop_string_ends_the_text_before_it) {
  const generated whole = generate(session(), "Once upon a time", 60, 0, 0);
  const auto dot = whole.text.find('.');
  if (dot == std::string::npos) GTEST_SKIP() << "no full stop in 60 tokens of: " << whole.text;
  const generated cut = generate(session(), "Once upon a time", 60, 0, 0, {"no such text", "."});
  EXPECT_EQ(cut.text, whole.text.substr(0, dot));
  EXPECT_EQ(cut.result.stop_reason, BITNET_STOP_STRING);
  EXPECT_EQ(cut.result.stop_index, 1U);
}

TEST_F(demo, a_second_call_continues_the_conversation) {
  bitnet_session* s = session();
  const generated first = generate(s, "Once upon a time", 10, 0, 0);
  bitnet_generation g{};
  g.struct_size = sizeof g;
  g.max_tokens = 10;
  bitnet_sampling greedy;
  bitnet_sampling_defaults(&greedy, sizeof greedy);
  greedy.temperature = 0;
  g.sampling = &greedy;
  std::vector<bitnet_token> more(10);
  g.out_tokens = more.data();
  g.out_capacity = more.size();
  bitnet_generation_result r{};
  r.struct_size = sizeof r;
  ASSERT_EQ(bitnet_generate(s, nullptr, 0, &g, &r, &error_), BITNET_OK) << error_.message;
  more.resize(r.n_generated);
  const generated whole = generate(session(), "Once upon a time", 20, 0, 0);
  std::vector<bitnet_token> joined = first.ids;
  joined.insert(joined.end(), more.begin(), more.end());
  EXPECT_EQ(joined, whole.ids);
}

TEST_F(demo, a_full_context_ends_the_generation) {
  const auto ids = tokens("Once upon a time");
  const generated t =
      generate(session(static_cast<uint32_t>(ids.size()) + 3), "Once upon a time", 40, 0, 0);
  EXPECT_EQ(t.result.stop_reason, BITNET_STOP_CONTEXT);
  EXPECT_EQ(t.result.n_generated, 3U);
}

TEST_F(demo, cancelling_from_another_thread_stops_soon) {
  bitnet_session* s = session(2048);
  bitnet_sampling sampling;
  bitnet_sampling_defaults(&sampling, sizeof sampling);
  sampling.ignore_eos = 1;
  bitnet_generation g{};
  g.struct_size = sizeof g;
  g.max_tokens = -1;
  g.sampling = &sampling;
  std::atomic<bool> started{false};
  g.text_user = &started;
  g.text = [](void* user, bitnet_str) {
    static_cast<std::atomic<bool>*>(user)->store(true);
    return int32_t{0};
  };
  std::jthread canceller([&] {
    while (!started) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    bitnet_session_cancel(s);
  });
  const auto ids = tokens("Once upon a time");
  bitnet_generation_result r{};
  r.struct_size = sizeof r;
  ASSERT_EQ(bitnet_generate(s, ids.data(), ids.size(), &g, &r, &error_), BITNET_OK);
  EXPECT_EQ(r.stop_reason, BITNET_STOP_CANCELLED);
  EXPECT_LT(bitnet_session_length(s), 2048U);
}

TEST_F(demo, a_cancel_before_a_call_counts_for_that_call_alone) {
  bitnet_session* s = session();
  const auto ids = tokens("Once upon a time");
  bitnet_generation g;
  bitnet_generation_defaults(&g, sizeof g);
  g.max_tokens = 4;
  bitnet_generation_result r{};
  r.struct_size = sizeof r;
  const auto generate = [&] {
    EXPECT_EQ(bitnet_generate(s, ids.data(), ids.size(), &g, &r, &error_), BITNET_OK)
        << error_.message;
    return r.stop_reason;
  };
  bitnet_session_cancel(s);
  const bitnet_status first = bitnet_generate(s, ids.data(), ids.size(), &g, &r, &error_);
  EXPECT_TRUE(first == BITNET_CANCELLED ||
              (first == BITNET_OK && r.stop_reason == BITNET_STOP_CANCELLED))
      << first;
  EXPECT_EQ(generate(), BITNET_STOP_LENGTH);
  bitnet_session_cancel(s);
  bitnet_session_clear_cancel(s);
  EXPECT_EQ(generate(), BITNET_STOP_LENGTH);
  bitnet_session_cancel(s);
  EXPECT_EQ(bitnet_session_eval(s, ids.data(), ids.size(), 0, nullptr, 0, &error_),
            BITNET_CANCELLED);
  EXPECT_EQ(bitnet_session_eval(s, ids.data(), ids.size(), 0, nullptr, 0, &error_), BITNET_OK);
}

}  // namespace
