// The types of keys and values of a session, and its window.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "bitnet/bitnet.h"
#include "demo_fixture.hpp"

namespace {

using namespace bitnet::test;  // NOLINT(google-build-using-namespace): the fixtures

// The size of the differences, as a share of the size of what was expected.
double error_share(const std::vector<float>& found, const std::vector<float>& expected) {
  double errors = 0, squares = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    errors += std::pow(double{found[i]} - expected[i], 2);
    squares += std::pow(double{expected[i]}, 2);
  }
  return std::sqrt(errors / squares);
}

TEST_F(demo, keys_and_values_in_blocks_take_their_bytes_and_depend_on_no_cut) {
  const auto ids = tokens(opening);
  bitnet_session_options options;
  bitnet_session_defaults(&options, sizeof options);
  options.n_context = 256;
  const struct {
    uint32_t k, v;
    const char* report;
    double half_a_step = 0;  // of the largest of its block, at most
  } rows[] = {
      // 4 blocks of 64 tokens, 3 layers, 2 heads of 64: 1536 heads of 256, 128, 68 or 36 bytes.
      {BITNET_KV_F16, BITNET_KV_F16, R"("dtype_k":"f16","dtype_v":"f16","bytes":393216)"},
      {BITNET_KV_Q8_0, BITNET_KV_Q8_0, R"("dtype_k":"q8_0","dtype_v":"q8_0","bytes":208896)",
       1.0 / 254},
      {BITNET_KV_F32, BITNET_KV_Q8_0, R"("dtype_k":"f32","dtype_v":"q8_0","bytes":497664)",
       1.0 / 254},
      {BITNET_KV_Q4_0, BITNET_KV_Q4_0, R"("dtype_k":"q4_0","dtype_v":"q4_0","bytes":110592)",
       1.0 / 16},
      {BITNET_KV_Q4_0, BITNET_KV_F16, R"("dtype_k":"q4_0","dtype_v":"f16","bytes":251904)",
       1.0 / 16},
      {BITNET_KV_F16, BITNET_KV_Q4_0, R"("dtype_k":"f16","dtype_v":"q4_0","bytes":251904)",
       1.0 / 16},
  };
  bitnet_model_info about{};
  about.struct_size = sizeof about;
  ASSERT_EQ(bitnet_model_describe(model_, &about, nullptr), BITNET_OK);
  const auto n_layers = static_cast<double>(about.n_layers);
  std::vector<float> exact;
  for (const auto& row : rows) {
    options.kv_k = row.k;
    options.kv_v = row.v;
    bitnet_session* s = session(options);
    const auto whole = logits(s, ids, ids.size());
    EXPECT_EQ(std::memcmp(whole.data(), logits(session(options), ids, 3).data(),
                          whole.size() * sizeof(float)),
              0);
    const std::string report = text_of([&](char* out, uint64_t n, uint64_t* needed) {
      return bitnet_session_report(s, out, n, needed, nullptr);
    });
    EXPECT_NE(report.find(row.report), std::string::npos) << report;
    if (exact.empty()) exact = whole;
    // A code of a key or value is off by half a step in each layer; the error of the logits is of
    // that order. Other bits show that the type was used at all.
    EXPECT_EQ(exact == whole, row.half_a_step == 0) << row.report;
    EXPECT_LE(error_share(whole, exact), 2.0 * n_layers * row.half_a_step) << row.report;
  }
}

TEST_F(demo, a_window_depends_on_no_cut_and_takes_bounded_memory) {
  const auto ids = many(400, vocabulary());
  bitnet_session_options options;
  bitnet_session_defaults(&options, sizeof options);
  const struct {
    const char* why;
    uint32_t window, keep, n_batch, most_blocks;
  } rows[] = {
      {"a block, as one step", 64, 0, 512, 3}, {"less than a block", 10, 0, 3, 2},
      {"more than one", 70, 0, 64, 4},         {"with the first kept", 70, 5, 64, 5},
      {"with two blocks kept", 64, 100, 1, 4}, {"int8 of odd steps", 129, 1, 50, 5},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    options.window = row.window;
    options.window_keep = row.keep;
    options.kv_k = options.kv_v = row.window == 129 ? BITNET_KV_Q8_0 : BITNET_KV_F16;
    options.n_batch = 512;
    const auto whole = logits(session(options), ids, ids.size());
    options.n_batch = row.n_batch;
    bitnet_session* s = session(options);
    EXPECT_EQ(bitnet_session_capacity(s), 512U) << "what the model was trained for";
    for (const std::size_t piece : {ids.size(), std::size_t{37}, std::size_t{1}}) {
      if (piece == 1 && row.keep != 5) continue;  // the slowest cut, once
      ASSERT_EQ(bitnet_session_truncate(s, 0, &error_), BITNET_OK);
      const auto cut = logits(s, ids, piece);
      EXPECT_EQ(std::memcmp(whole.data(), cut.data(), whole.size() * sizeof(float)), 0)
          << "pieces of " << piece;
    }
    const std::string report = text_of([&](char* out, uint64_t n, uint64_t* needed) {
      return bitnet_session_report(s, out, n, needed, nullptr);
    });
    const uint64_t block = 64 * 3 * 2 * (row.window == 129 ? 2 * 68 : 2 * 128);
    EXPECT_NE(report.find("\"bytes\":" + std::to_string(row.most_blocks * block) + ","),
              std::string::npos)
        << report;
  }
}

TEST_F(demo, a_window_longer_than_the_text_has_no_effect) {
  const auto ids = many(100, vocabulary());
  const auto plain = logits(session(), ids, ids.size());
  bitnet_session_options options;
  bitnet_session_defaults(&options, sizeof options);
  for (const uint32_t window : {100U, 255U, 256U, 4'000'000'000U}) {
    options.n_context = 256;
    options.window = window;
    const auto seen = logits(session(options), ids, 7);
    EXPECT_EQ(std::memcmp(plain.data(), seen.data(), plain.size() * sizeof(float)), 0) << window;
  }
  options.window = 99;
  const auto seen = logits(session(options), ids, 7);
  const std::size_t last = std::size_t{99} * vocabulary();
  EXPECT_EQ(std::memcmp(plain.data(), seen.data(), last * sizeof(float)), 0);
  EXPECT_NE(std::memcmp(plain.data() + last, seen.data() + last, vocabulary() * sizeof(float)), 0);
}

TEST_F(demo, truncating_with_a_window_restores_the_earlier_logits) {
  const auto ids = many(300, vocabulary());
  bitnet_session_options options;
  bitnet_session_defaults(&options, sizeof options);
  options.window = 70;
  options.window_keep = 3;
  const auto whole = logits(session(options), ids, ids.size());
  bitnet_session* s = session(options);
  logits(s, ids, 64);
  for (const std::size_t kept : {299U, 290U, 200U, 70U, 3U}) {
    ASSERT_EQ(bitnet_session_truncate(s, kept, &error_), BITNET_OK);
    EXPECT_EQ(bitnet_session_length(s), kept);
    const auto again = logits(s, {ids.begin() + static_cast<int64_t>(kept), ids.end()}, 9);
    EXPECT_EQ(
        std::memcmp(whole.data() + kept * vocabulary(), again.data(), again.size() * sizeof(float)),
        0)
        << kept;
  }
}

TEST_F(demo, a_window_continues_when_its_memory_is_full) {
  bitnet_session_options options;
  bitnet_session_defaults(&options, sizeof options);
  options.window = 64;
  bitnet_session* s = session(options);
  const auto ids = many(400, vocabulary());
  logits(s, ids, 400);
  std::vector<float> row(vocabulary());
  for (int i = 0; i < 112; ++i)
    ASSERT_EQ(bitnet_session_eval(s, ids.data(), 1, 0, row.data(), row.size(), &error_), BITNET_OK);
  EXPECT_EQ(bitnet_session_eval(s, ids.data(), 1, 0, row.data(), row.size(), &error_),
            BITNET_CONTEXT_FULL)
      << "the model was trained for no further positions";
  options.window = 0;
  options.window_keep = 4;
  bitnet_session* none = nullptr;
  EXPECT_EQ(bitnet_session_open(model_, &options, &none, &error_), BITNET_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("set window"), std::string::npos);
}

}  // namespace
