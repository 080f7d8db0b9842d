#pragma once
// Fixtures of tests on the demo model through bitnet.h: a runtime, the model, and its sessions.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "../demo_model.hpp"
#include "bitnet/bitnet.h"
#include "demo_session.hpp"

namespace bitnet::test {

template <class F>
std::string text_of(F&& call) {
  uint64_t needed = 0;
  if (call(nullptr, uint64_t{0}, &needed) != BITNET_OK) return {};
  std::string out(needed, '\0');
  return call(out.data(), needed, &needed) == BITNET_OK ? out : std::string();
}

// A runtime with two threads.
class with_runtime : public testing::Test {
 protected:
  void SetUp() override {
    bitnet_runtime_options options;
    bitnet_runtime_defaults(&options, sizeof options);
    options.n_threads = 2;
    ASSERT_EQ(bitnet_runtime_open(&options, &runtime_, &error_), BITNET_OK) << error_.message;
  }
  void TearDown() override { bitnet_runtime_close(runtime_); }

  bitnet_error error_ = blank_error();
  bitnet_runtime* runtime_ = nullptr;
};

// A runtime and the demo model, or a reason why there is none.
class demo : public with_runtime {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(with_runtime::SetUp());
    const std::string file = model_file();
    if (file.empty()) GTEST_SKIP() << "no demo model in models/";
    const bitnet_status status =
        bitnet_model_open(runtime_, file.c_str(), nullptr, &model_, &error_);
    if (status == BITNET_UNAVAILABLE) GTEST_SKIP() << error_.message;
    ASSERT_EQ(status, BITNET_OK) << error_.message;
  }
  void TearDown() override {
    for (bitnet_session* s : sessions_) bitnet_session_close(s);
    bitnet_model_close(model_);
    with_runtime::TearDown();
  }

  virtual std::string model_file() { return demo_model(); }

  bitnet_session* session(uint32_t n_context = 256, uint32_t n_batch = 64) {
    bitnet_session_options options;
    bitnet_session_defaults(&options, sizeof options);
    options.n_context = n_context;
    options.n_batch = n_batch;
    return session(options);
  }
  bitnet_session* session(bitnet_session_options options) {
    options.deterministic = 1;
    bitnet_session* s = nullptr;
    EXPECT_EQ(bitnet_session_open(model_, &options, &s, &error_), BITNET_OK) << error_.message;
    sessions_.push_back(s);
    return s;
  }

  std::vector<bitnet_token> tokens(const std::string& text,
                                   uint32_t flags = BITNET_TOKENIZE_MODEL_BOS) {
    uint64_t n = 0;
    EXPECT_EQ(bitnet_tokenize(model_, {text.data(), text.size()}, flags, nullptr, 0, &n, &error_),
              BITNET_OK)
        << error_.message;
    std::vector<bitnet_token> ids(n);
    bitnet_tokenize(model_, {text.data(), text.size()}, flags, ids.data(), n, &n, &error_);
    return ids;
  }

  uint32_t vocabulary() {
    bitnet_model_info info{};
    info.struct_size = sizeof info;
    EXPECT_EQ(bitnet_model_describe(model_, &info, nullptr), BITNET_OK);
    return info.n_vocab;
  }

  // Logits after each of `ids`, evaluated in pieces of `piece`.
  std::vector<float> logits(bitnet_session* s, const std::vector<bitnet_token>& ids,
                            std::size_t piece) {
    const uint32_t n_vocab = vocabulary();
    std::vector<float> out(ids.size() * n_vocab);
    for (std::size_t at = 0; at < ids.size(); at += piece) {
      const std::size_t n = std::min(piece, ids.size() - at);
      EXPECT_EQ(bitnet_session_eval(s, ids.data() + at, n, 1, out.data() + at * n_vocab,
                                    n * n_vocab, &error_),
                BITNET_OK)
          << error_.message;
    }
    return out;
  }

  struct generated {
    std::string text;
    std::vector<bitnet_token> ids;
    bitnet_generation_result result{};
  };
  generated generate(bitnet_session* s, const std::string& prompt, int max_tokens,
                     float temperature, uint32_t seed, std::vector<std::string> stops = {}) {
    bitnet_sampling sampling;
    bitnet_sampling_defaults(&sampling, sizeof sampling);
    sampling.temperature = temperature;
    sampling.seed = seed;
    generated out;
    out.ids.resize(static_cast<std::size_t>(max_tokens));
    out.result.struct_size = sizeof out.result;
    std::vector<bitnet_str> stop_strings;
    for (const std::string& stop : stops) stop_strings.push_back({stop.data(), stop.size()});
    bitnet_generation g{};
    g.struct_size = sizeof g;
    g.max_tokens = max_tokens;
    g.sampling = &sampling;
    g.stop_strings = stop_strings.data();
    g.n_stop_strings = static_cast<uint32_t>(stop_strings.size());
    g.text_user = &out.text;
    g.text = [](void* user, bitnet_str piece) {
      static_cast<std::string*>(user)->append(piece.data, piece.size);
      return int32_t{0};
    };
    g.out_tokens = out.ids.data();
    g.out_capacity = out.ids.size();
    const auto ids = tokens(prompt);
    EXPECT_EQ(bitnet_generate(s, ids.data(), ids.size(), &g, &out.result, &error_), BITNET_OK)
        << error_.message;
    out.ids.resize(out.result.n_generated);
    return out;
  }

  bitnet_model* model_ = nullptr;
  std::vector<bitnet_session*> sessions_;
};

inline constexpr const char* opening =
    "Once upon a time, there was a fox. The fox had a lamp and a friend.";

// Enough for several blocks of 64 tokens; the words do not matter.
inline std::vector<bitnet_token> many(std::size_t n, uint32_t n_vocab) {
  std::vector<bitnet_token> ids;
  for (std::size_t i = 0; i < n; ++i)
    ids.push_back(static_cast<bitnet_token>((i * 7919 + 13) % n_vocab));
  return ids;
}

// The demo model whose sessions share `blocks` blocks of f16 keys and values.
class budgeted : public demo {
 protected:
  static constexpr uint64_t block_bytes = uint64_t{64} * 3 * 2 * 2 * 128;

  void limit(uint64_t blocks, uint32_t policy) {
    limit_bytes(blocks * block_bytes + block_bytes / 2, policy);
  }
  void limit_bytes(uint64_t bytes, uint32_t policy) {
    for (bitnet_session* s : sessions_) bitnet_session_close(s);
    sessions_.clear();
    bitnet_model_close(model_);
    model_ = nullptr;
    bitnet_model_options options;
    bitnet_model_defaults(&options, sizeof options);
    options.kv_budget_bytes = bytes;
    options.kv_eviction = policy;
    ASSERT_EQ(bitnet_model_open(runtime_, model_file().c_str(), &options, &model_, &error_),
              BITNET_OK)
        << error_.message;
  }
  uint64_t evictions(bitnet_session* s) {
    const std::string report = text_of([&](char* out, uint64_t n, uint64_t* needed) {
      return bitnet_session_report(s, out, n, needed, nullptr);
    });
    const auto at = report.find("\"evictions\":");
    EXPECT_NE(at, std::string::npos) << report;
    return at == std::string::npos ? 0 : std::stoull(report.substr(at + 12));
  }
};

}  // namespace bitnet::test
