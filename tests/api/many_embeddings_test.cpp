// Embeddings of many texts at once, through bitnet.h: each has the bits of bitnet_embed.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "../core/model/small_hybrid.hpp"
#include "../scratch_folder.hpp"
#include "many_requests.hpp"
#include "tolerances.hpp"

namespace {

using namespace bitnet::test;  // NOLINT(google-build-using-namespace): the requests

using floats = std::vector<float>;
constexpr uint32_t poolings[] = {BITNET_POOLING_MEAN, BITNET_POOLING_CLS, BITNET_POOLING_LAST};

class many_embeddings : public scheduler {
 protected:
  void close() {
    for (bitnet_request* r : requests_) bitnet_request_close(r);
    requests_.clear();
    bitnet_scheduler_close(scheduler_);
    scheduler_ = nullptr;
  }
  bitnet_status open_for(uint32_t pooling) {
    close();
    change_ = [pooling](bitnet_session_options& o) {
      o.deterministic = 0;
      o.embeddings = 1;
      o.pooling = pooling;
    };
    return open(defaults());
  }
  void load(const bitnet::tests::gguf_builder& b) {
    replace_model(scratch_.write("small.gguf", bitnet::tests::as_text(b.build())));
  }

  static bitnet_request_options asking(const std::vector<bitnet_token>& prompt) {
    bitnet_request_options o;
    bitnet_request_defaults(&o, sizeof o);
    o.prompt = prompt.data();
    o.n_prompt = prompt.size();
    return o;
  }
  bitnet_request* ask(const std::vector<bitnet_token>& prompt) {
    const bitnet_request_options o = asking(prompt);
    bitnet_request* r = nullptr;
    error_ = blank_error();
    EXPECT_EQ(bitnet_request_submit(scheduler_, &o, &r, &error_), BITNET_OK) << error_.message;
    if (r != nullptr) requests_.push_back(r);
    return r;
  }
  struct vector_of {
    floats is;
    bitnet_event end{};
  };
  // Its only event.
  vector_of embedding(bitnet_request* r) {
    vector_of out;
    out.end.struct_size = sizeof out.end;
    error_ = blank_error();
    EXPECT_EQ(bitnet_request_next(r, patience_ms, &out.end, &error_), BITNET_OK) << error_.message;
    EXPECT_EQ(out.end.kind, BITNET_EVENT_END);
    if (out.end.embedding != nullptr)
      out.is.assign(out.end.embedding, out.end.embedding + out.end.n_embedding);
    bitnet_event more{};
    more.struct_size = sizeof more;
    EXPECT_EQ(bitnet_request_next(r, 0, &more, nullptr), BITNET_NOT_FOUND);
    return out;
  }
  // Those of a session, one after the other.
  std::vector<floats> alone(const std::vector<std::vector<bitnet_token>>& prompts,
                            uint32_t pooling) {
    bitnet_session_options o;
    bitnet_session_defaults(&o, sizeof o);
    o.n_context = 512;
    o.embeddings = 1;
    o.pooling = pooling;
    bitnet_session* s = nullptr;
    error_ = blank_error();
    EXPECT_EQ(bitnet_session_open(demo_.model, &o, &s, &error_), BITNET_OK) << error_.message;
    std::vector<floats> out;
    for (const auto& ids : prompts) {
      uint64_t n = 0;
      EXPECT_EQ(bitnet_embed(s, nullptr, 0, nullptr, 0, &n, &error_), BITNET_OK);
      floats& one = out.emplace_back(n);
      EXPECT_EQ(bitnet_embed(s, ids.data(), ids.size(), one.data(), n, nullptr, &error_), BITNET_OK)
          << error_.message;
    }
    bitnet_session_close(s);
    return out;
  }
  // 32 together, of which some are longer than a step.
  void expect_bits_of_a_session(uint32_t pooling) {
    std::vector<std::vector<bitnet_token>> prompts;
    for (uint32_t i = 0; i < 32; ++i) prompts.push_back(prompt_of(1 + i * 37 % 290, i % 7));
    const auto wanted = alone(prompts, pooling);
    std::vector<bitnet_request*> all;
    for (const auto& p : prompts) all.push_back(ask(p));
    for (uint32_t i = 0; i < 32; ++i) {
      const vector_of got = embedding(all[i]);
      EXPECT_EQ(got.is, wanted[i]) << "text " << i;
      EXPECT_EQ(got.end.n_prompt, prompts[i].size());
      EXPECT_EQ(got.end.n_generated, 0U);
      double squares = 0;
      for (const float x : got.is) squares += double{x} * x;
      EXPECT_NEAR(squares, 1, unit_length_tolerance);
    }
    EXPECT_EQ(embedding(ask(prompts[9])).is, wanted[9]) << "and alone";
    expect_no_blocks();
  }

  scratch_folder scratch_;
};

TEST_F(many_embeddings, have_the_bits_that_each_has_alone) {
  for (const uint32_t pooling : poolings) {
    SCOPED_TRACE(pooling);
    ASSERT_EQ(open_for(pooling), BITNET_OK) << error_.message;
    expect_bits_of_a_session(pooling);
    EXPECT_LT(report()["steps"], 32 * 5) << "they share steps";
  }
}

TEST_F(many_embeddings, of_a_model_with_states_have_the_bits_that_each_has_alone) {
  load(bitnet::tests::small_hybrid());
  for (const uint32_t pooling : poolings) {
    SCOPED_TRACE(pooling);
    ASSERT_EQ(open_for(pooling), BITNET_OK) << error_.message;
    expect_bits_of_a_session(pooling);
  }
}

TEST_F(many_embeddings, use_a_known_prefix_where_they_need_no_rows_of_it) {
  for (const uint32_t pooling : poolings) {
    SCOPED_TRACE(pooling);
    ASSERT_EQ(open_for(pooling), BITNET_OK) << error_.message;
    auto prompt = prompt_of(200, 3);
    EXPECT_EQ(embedding(ask(prompt)).end.n_cached, 0U);
    prompt.push_back(9);
    const auto second = embedding(ask(prompt));
    EXPECT_EQ(second.end.n_cached, pooling == BITNET_POOLING_LAST ? 192U : 0U);
    EXPECT_EQ(second.is, alone({prompt}, pooling)[0]);
  }
  ASSERT_EQ(open_for(BITNET_POOLING_MODEL), BITNET_OK) << error_.message;
  EXPECT_EQ(report()["pooling"], "last") << "the demo model says nothing of it";
}

TEST_F(many_embeddings, of_as_many_tokens_as_the_context_has_are_taken) {
  ASSERT_EQ(open_for(BITNET_POOLING_MEAN), BITNET_OK) << error_.message;
  const auto whole = prompt_of(512, 2);
  EXPECT_EQ(embedding(ask(whole)).is, alone({whole}, BITNET_POOLING_MEAN)[0]);
}

TEST_F(many_embeddings, reject_what_generates) {
  ASSERT_EQ(open_for(BITNET_POOLING_LAST), BITNET_OK) << error_.message;
  const auto prompt = prompt_of(10, 1);
  bitnet_generation g;
  bitnet_generation_defaults(&g, sizeof g);
  struct row {
    const char* says;
    std::function<void(bitnet_request_options&)> change;
  };
  const row rows[] = {
      {"leave generation of the request NULL", [&](auto& o) { o.generation = &g; }},
      {"leave n_choices of the request 0", [](auto& o) { o.n_choices = 2; }},
      {"leave logprobs of the request 0", [](auto& o) { o.logprobs = 1; }},
      {"leave n_top_logprobs of the request 0", [](auto& o) { o.n_top_logprobs = 5; }},
      {"leave best_of of the request 0", [](auto& o) { o.best_of = 2; }},
      {"at least one token", [](auto& o) { o.n_prompt = 0; }},
  };
  bitnet_request* r = nullptr;
  for (const row& one : rows) {
    bitnet_request_options o = asking(prompt);
    one.change(o);
    error_ = blank_error();
    EXPECT_EQ(bitnet_request_submit(scheduler_, &o, &r, &error_), BITNET_INVALID_ARGUMENT)
        << one.says;
    EXPECT_NE(std::string(error_.message).find(one.says), std::string::npos) << error_.message;
  }
  const auto longer = prompt_of(513, 1);
  const bitnet_request_options o = asking(longer);
  EXPECT_EQ(bitnet_request_submit(scheduler_, &o, &r, &error_), BITNET_CONTEXT_FULL);
  EXPECT_NE(std::string(error_.message).find("513 tokens do not fit the context of 512"),
            std::string::npos)
      << error_.message;
  EXPECT_EQ(r, nullptr);
}

TEST_F(many_embeddings, invalid_options_are_rejected) {
  change_ = [](bitnet_session_options& o) { o.pooling = BITNET_POOLING_MEAN; };
  EXPECT_EQ(open(defaults()), BITNET_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("set embeddings too"), std::string::npos);
  change_ = [](bitnet_session_options& o) { o.embeddings = 1, o.pooling = 9; };
  EXPECT_EQ(open(defaults()), BITNET_INVALID_ARGUMENT);
  change_ = [](bitnet_session_options& o) { o.profile = 1; };
  EXPECT_EQ(open(defaults()), BITNET_UNSUPPORTED);
}

TEST_F(many_embeddings, that_are_cancelled_have_no_vector) {
  ASSERT_EQ(open_for(BITNET_POOLING_MEAN), BITNET_OK) << error_.message;
  std::vector<bitnet_request*> all;
  for (uint32_t i = 0; i < 20; ++i) all.push_back(ask(prompt_of(500, i)));
  for (bitnet_request* r : all) bitnet_request_cancel(r);
  for (bitnet_request* r : all) {
    const auto got = embedding(r);
    EXPECT_EQ(got.is.empty(), got.end.stop_reason == BITNET_STOP_CANCELLED);
  }
  EXPECT_EQ(embedding(ask(prompt_of(5, 1))).is, alone({prompt_of(5, 1)}, BITNET_POOLING_MEAN)[0]);
}

}  // namespace
