// Embeddings through the C API: of the demo model, and of files that say something of them.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "../core/model/small_hybrid.hpp"
#include "../demo_model.hpp"
#include "../scratch_folder.hpp"
#include "bitnet/bitnet.h"
#include "tolerances.hpp"

namespace {

using bitnet::test::demo_model;
using bitnet::tests::gguf_builder;
using vector = std::vector<float>;
using tokens = std::vector<bitnet_token>;

constexpr std::array poolings = {BITNET_POOLING_MEAN, BITNET_POOLING_CLS, BITNET_POOLING_LAST};

tokens many(std::size_t n, int32_t from = 5) {
  tokens out;
  for (std::size_t i = 0; i < n; ++i) out.push_back(from + static_cast<int32_t>(i * 7 % 200));
  return out;
}

class embeddings : public testing::Test {
 protected:
  void SetUp() override {
    error_.struct_size = sizeof error_;
    bitnet_runtime_options options;
    bitnet_runtime_defaults(&options, sizeof options);
    options.n_threads = 2;
    ASSERT_EQ(bitnet_runtime_open(&options, &runtime_, &error_), BITNET_OK) << error_.message;
    const std::string file = demo_model();
    if (file.empty()) GTEST_SKIP() << "no demo model in models/";
    load(file);
  }
  void TearDown() override {
    close();
    bitnet_runtime_close(runtime_);
  }
  void close() {
    for (bitnet_session* s : sessions_) bitnet_session_close(s);
    sessions_.clear();
    bitnet_model_close(std::exchange(model_, nullptr));
  }
  void load(const std::string& file) {
    close();
    const bitnet_status status =
        bitnet_model_open(runtime_, file.c_str(), nullptr, &model_, &error_);
    if (status == BITNET_UNAVAILABLE) GTEST_SKIP() << error_.message;
    ASSERT_EQ(status, BITNET_OK) << error_.message;
  }
  void load(const gguf_builder& b) {
    load(scratch_.write("small.gguf", bitnet::tests::as_text(b.build())));
  }

  static bitnet_session_options defaults() {
    bitnet_session_options options;
    bitnet_session_defaults(&options, sizeof options);
    options.n_context = 256;
    return options;
  }
  bitnet_session* open(bitnet_session_options options) {
    bitnet_session* s = nullptr;
    EXPECT_EQ(bitnet_session_open(model_, &options, &s, &error_), BITNET_OK) << error_.message;
    if (s != nullptr) sessions_.push_back(s);
    return s;
  }
  bitnet_session* session(uint32_t pooling = BITNET_POOLING_MODEL, uint32_t n_batch = 512) {
    bitnet_session_options options = defaults();
    options.embeddings = 1;
    options.pooling = pooling;
    options.n_batch = n_batch;
    return open(options);
  }
  uint32_t width() {
    bitnet_model_info info{};
    info.struct_size = sizeof info;
    EXPECT_EQ(bitnet_model_describe(model_, &info, nullptr), BITNET_OK);
    return info.n_embedding;
  }
  vector of(bitnet_session* s, const tokens& ids) {
    vector out(width());
    EXPECT_EQ(bitnet_embed(s, ids.data(), ids.size(), out.data(), out.size(), nullptr, &error_),
              BITNET_OK)
        << error_.message;
    return out;
  }
  std::string report(bitnet_session* s) {
    std::string out(65536, ' ');
    uint64_t n = 0;
    EXPECT_EQ(bitnet_session_report(s, out.data(), out.size(), &n, &error_), BITNET_OK);
    out.resize(n);
    return out;
  }
  void expect_rejected(bitnet_status got, bitnet_status status, const char* says) {
    EXPECT_EQ(got, status) << error_.message;
    EXPECT_NE(std::string(error_.message).find(says), std::string::npos) << error_.message;
  }

  bitnet_error error_{};
  bitnet_runtime* runtime_ = nullptr;
  bitnet_model* model_ = nullptr;
  std::vector<bitnet_session*> sessions_;
  bitnet::test::scratch_folder scratch_;
};

TEST_F(embeddings, depend_on_the_tokens_alone) {
  const tokens ids = many(150);
  for (const uint32_t pooling : poolings) {
    SCOPED_TRACE(pooling);
    const vector whole = of(session(pooling), ids);
    for (const uint32_t batch : {1U, 7U, 64U, 512U}) {
      SCOPED_TRACE(batch);
      bitnet_session* s = session(pooling, batch);
      EXPECT_EQ(of(s, ids), whole);
      EXPECT_EQ(bitnet_session_length(s), 0U);
      EXPECT_NE(of(s, many(90, 30)), whole) << "another text";
      EXPECT_EQ(of(s, ids), whole) << "behind another text";
    }
    double squares = 0;
    for (const float x : whole) squares += double{x} * x;
    EXPECT_NEAR(squares, 1, bitnet::test::unit_length_tolerance);
  }
}

TEST_F(embeddings, pool_as_the_options_say) {
  const tokens ids = many(40);
  const tokens first(ids.begin(), ids.begin() + 1);
  const vector alone = of(session(BITNET_POOLING_LAST), first);
  EXPECT_EQ(of(session(BITNET_POOLING_MEAN), first), alone) << "of one token all are the same";
  EXPECT_EQ(of(session(BITNET_POOLING_CLS), ids), alone) << "the first token sees no other";
  const vector last = of(session(BITNET_POOLING_LAST), ids);
  EXPECT_NE(last, alone);
  EXPECT_NE(of(session(BITNET_POOLING_MEAN), ids), last);
  EXPECT_EQ(of(session(), ids), last) << "the demo model says nothing of it";
}

TEST_F(embeddings, leave_the_output_head_alone) {
  bitnet_session* s = session();
  of(s, many(70));
  const std::string said = report(s);
  EXPECT_NE(said.find("\"pooling\":\"last\""), std::string::npos) << said;
  EXPECT_EQ(said.find("lm_head"), std::string::npos) << said;
  EXPECT_EQ(said.find("linear_dense"), std::string::npos) << said;
}

TEST_F(embeddings, with_a_window_depend_on_no_cut) {
  bitnet_session_options options = defaults();
  options.embeddings = 1;
  options.window = 30;
  const tokens ids = many(150);
  const vector whole = of(open(options), ids);
  EXPECT_NE(whole, of(session(), ids));
  options.n_batch = 1;
  EXPECT_EQ(of(open(options), ids), whole);
}

TEST_F(embeddings, wrong_calls_are_rejected) {
  bitnet_session* s = session();
  vector out(width());
  uint64_t needed = 0;
  const auto call = [&](bitnet_session* to, const tokens& ids, uint64_t capacity) {
    return bitnet_embed(to, ids.data(), ids.size(), out.data(), capacity, &needed, &error_);
  };
  const vector right = of(s, many(20));
  expect_rejected(call(s, {}, out.size()), BITNET_INVALID_ARGUMENT, "there are no tokens");
  expect_rejected(call(s, many(257), out.size()), BITNET_CONTEXT_FULL,
                  "257 tokens do not fit the context of 256");
  expect_rejected(call(s, {5, 1 << 30}, out.size()), BITNET_INVALID_ARGUMENT,
                  "is not in the vocabulary");
  expect_rejected(call(session(BITNET_POOLING_CLS), {5, -1}, out.size()), BITNET_INVALID_ARGUMENT,
                  "token id -1");
  expect_rejected(call(s, many(3), out.size() - 1), BITNET_INVALID_ARGUMENT,
                  "but an embedding has");
  EXPECT_EQ(needed, out.size());
  needed = 0;
  EXPECT_EQ(bitnet_embed(s, nullptr, 0, nullptr, 0, &needed, &error_), BITNET_OK);
  EXPECT_EQ(needed, out.size()) << "asked for the size";
  expect_rejected(bitnet_embed(s, nullptr, 3, out.data(), out.size(), nullptr, &error_),
                  BITNET_INVALID_ARGUMENT, "NULL");
  expect_rejected(call(nullptr, many(3), out.size()), BITNET_INVALID_ARGUMENT, "NULL");
  expect_rejected(call(open(defaults()), many(3), out.size()), BITNET_INVALID_ARGUMENT,
                  "not opened for embeddings");
  expect_rejected(bitnet_session_eval(s, many(3).data(), 3, 0, nullptr, 0, &error_),
                  BITNET_INVALID_ARGUMENT, "has no logits");
  bitnet_generation_result done{};
  done.struct_size = sizeof done;
  expect_rejected(bitnet_generate(s, many(3).data(), 3, nullptr, &done, &error_),
                  BITNET_INVALID_ARGUMENT, "has no logits");
  EXPECT_EQ(of(s, many(20)), right) << "as if nothing had been";
}

TEST_F(embeddings, sessions_with_invalid_options_are_rejected) {
  bitnet_session* s = nullptr;
  bitnet_session_options options = defaults();
  options.pooling = BITNET_POOLING_LAST;
  expect_rejected(bitnet_session_open(model_, &options, &s, &error_), BITNET_INVALID_ARGUMENT,
                  "set embeddings too");
  options.embeddings = 1;
  options.pooling = 9;
  expect_rejected(bitnet_session_open(model_, &options, &s, &error_), BITNET_INVALID_ARGUMENT,
                  "must be MODEL, MEAN, CLS or LAST, found 9");
  EXPECT_EQ(s, nullptr);
}

TEST_F(embeddings, that_are_cancelled_leave_the_session_unchanged) {
  const tokens ids = many(200);
  for (const uint32_t pooling : poolings) {
    bitnet_session* s = session(pooling, 16);
    const vector right = of(s, ids);
    bitnet_session_cancel(s);
    vector out(width());
    expect_rejected(
        bitnet_embed(s, ids.data(), ids.size(), out.data(), out.size(), nullptr, &error_),
        BITNET_CANCELLED, "");
    EXPECT_EQ(bitnet_session_length(s), 0U);
    EXPECT_EQ(of(s, ids), right);
  }
}

TEST_F(embeddings, are_pooled_as_the_file_says) {
  const std::pair<uint32_t, const char*> rows[] = {
      {0, "last"}, {1, "mean"}, {2, "cls"}, {3, "last"}};
  for (const auto& [number, name] : rows) {
    gguf_builder b = bitnet::tests::small_model("qwen3");
    load(b.u32("qwen3.pooling_type", number));
    bitnet_session* s = session();
    EXPECT_NE(report(s).find("\"pooling\":\"" + std::string(name)), std::string::npos) << number;
    EXPECT_EQ(of(s, many(9)), vector(width())) << "rows of zeros have no direction";
    EXPECT_NE(report(session(BITNET_POOLING_MEAN)).find("\"mean\""), std::string::npos);
  }
  gguf_builder b = bitnet::tests::small_model("qwen3");
  load(b.u32("qwen3.pooling_type", 4));
  bitnet_session* s = nullptr;
  bitnet_session_options options = defaults();
  options.embeddings = 1;
  expect_rejected(bitnet_session_open(model_, &options, &s, &error_), BITNET_UNSUPPORTED,
                  "pooling_type is 4");
  EXPECT_NE(session(BITNET_POOLING_CLS), nullptr) << "the option decides";
  EXPECT_NE(open(defaults()), nullptr) << "for logits it does not matter";
}

TEST_F(embeddings, of_texts_end_as_the_file_asks) {
  const auto ids_of = [&](uint32_t flags) {
    tokens out(16);
    uint64_t n = 0;
    EXPECT_EQ(bitnet_tokenize(model_, {"ab", 2}, flags, out.data(), out.size(), &n, &error_),
              BITNET_OK);
    out.resize(n);
    return out;
  };
  for (const bool asks : {true, false}) {
    gguf_builder b = bitnet::tests::small_model("qwen3");
    load(b.boolean("tokenizer.ggml.add_eos_token", asks ? 1 : 0));
    tokens plain = ids_of(0);
    if (asks) plain.push_back(2);
    EXPECT_EQ(ids_of(BITNET_TOKENIZE_MODEL_EOS), plain);
  }
}

}  // namespace
