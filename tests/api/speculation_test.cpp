// Speculation through bitnet.h: on real models of each kind of memory (keys, recurrent states), in
// sessions and among the requests of a scheduler, tokens and texts are those without.

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "../core/model/small_hybrid.hpp"
#include "../scratch_folder.hpp"
#include "many_requests.hpp"

namespace {

using namespace bitnet::test;  // NOLINT(google-build-using-namespace): the requests

bitnet_speculation speculation_of(uint32_t type, bitnet_model* draft = nullptr) {
  bitnet_speculation s;
  bitnet_speculation_defaults(&s, sizeof s);
  s.type = type;
  s.draft = draft;
  return s;
}

class speculation : public scheduler {
 protected:
  // The demo model is a story teller; the small hybrid one has recurrent states and says nothing.
  void load_hybrid() {
    replace_model(scratch_.write("small.gguf",
                                 bitnet::tests::as_text(bitnet::tests::small_hybrid().build())));
  }
  // A text that repeats itself, which a look-up finds drafts in.
  static wish wish_of(uint32_t kind, float temperature, const bitnet_speculation* how) {
    wish w;
    w.prompt = prompt_of(9, kind);
    for (int i = 0; i < 2; ++i)
      w.prompt.insert(w.prompt.end(), w.prompt.begin(), w.prompt.begin() + 9);
    w.temperature = temperature;
    w.seed = kind;
    w.speculation = how;
    return w;
  }
  // The begin of a text that the demo model goes on with for more than the tests' tokens.
  std::vector<bitnet_token> story() {
    const std::string text = "Once upon a time";
    std::vector<bitnet_token> out(64);
    uint64_t n = 0;
    EXPECT_EQ(bitnet_tokenize(demo_.model, {text.data(), text.size()}, BITNET_TOKENIZE_MODEL_BOS,
                              out.data(), out.size(), &n, &error_),
              BITNET_OK)
        << error_.message;
    out.resize(n);
    return out;
  }
  void expect_same_alone(const wish& w) {
    wish plain = w;
    plain.speculation = nullptr;
    EXPECT_EQ(alone(w), alone(plain)) << "seed " << w.seed;
  }
  scratch_folder scratch_;
};

TEST_F(speculation, a_hundred_seeds_give_the_same_tokens_in_a_session) {
  const auto look_up = speculation_of(BITNET_SPECULATION_NGRAM);
  const auto model = speculation_of(BITNET_SPECULATION_AUTO, demo_.model);
  for (uint32_t seed = 0; seed < 100; ++seed) {
    wish w = wish_of(seed, seed % 4 == 0 ? 0.0F : 1.0F, seed % 2 == 0 ? &look_up : &model);
    w.max_tokens = 8;
    expect_same_alone(w);
  }
}

TEST_F(speculation, recurrent_states_are_those_of_the_accepted_tokens) {
  load_hybrid();
  const auto look_up = speculation_of(BITNET_SPECULATION_NGRAM);
  const auto model = speculation_of(BITNET_SPECULATION_DRAFT, demo_.model);
  for (uint32_t seed = 0; seed < 6; ++seed)
    for (const auto* how : {&look_up, &model}) {
      wish w = wish_of(seed, seed % 2 == 0 ? 0.0F : 1.0F, how);
      w.max_tokens = 40;
      expect_same_alone(w);
    }
}

// A model that drafts for itself is always right where the likeliest token is taken.
TEST_F(speculation, a_draft_model_that_agrees_is_accepted) {
  const auto how = speculation_of(BITNET_SPECULATION_DRAFT, demo_.model);
  const bitnet_sampling s = sampling_of(wish{}, 0);  // greedy
  wish w = wish_of(1, 0, &how);
  w.prompt = story();
  bitnet_generation g = generation_of(w, s);
  g.max_tokens = 40;
  bitnet_generation_result r{};
  r.struct_size = sizeof r;
  ASSERT_EQ(bitnet_generate(demo_.session, w.prompt.data(), w.prompt.size(), &g, &r, &error_),
            BITNET_OK)
      << error_.message;
  EXPECT_GT(r.n_drafted, 0U);
  EXPECT_EQ(r.n_accepted, r.n_drafted);
  uint64_t n = 0;
  ASSERT_EQ(bitnet_session_report(demo_.session, nullptr, 0, &n, nullptr), BITNET_OK);
  std::string text(n, ' ');
  ASSERT_EQ(bitnet_session_report(demo_.session, text.data(), n, &n, nullptr), BITNET_OK);
  const auto report = nlohmann::json::parse(text).at("speculation");
  EXPECT_EQ(report.at("type"), "draft");
  EXPECT_EQ(report.at("drafted"), r.n_drafted);
  EXPECT_EQ(report.at("accepted"), r.n_accepted);
  EXPECT_GT(report.at("step_ratio"), 0);
}

TEST_F(speculation, sixteen_requests_give_what_each_gives_alone) {
  for (const bool hybrid : {false, true}) {
    if (hybrid) load_hybrid();
    bitnet_scheduler_options o = defaults();
    o.max_sequences = 16;
    ASSERT_EQ(open(o), BITNET_OK) << error_.message;
    const auto look_up = speculation_of(BITNET_SPECULATION_NGRAM);
    const auto model = speculation_of(BITNET_SPECULATION_DRAFT, demo_.model);
    const std::array<const bitnet_speculation*, 3> hows{&look_up, &model, nullptr};
    std::vector<wish> wishes;
    std::vector<bitnet_request*> asked;
    for (uint32_t i = 0; i < 16; ++i) {
      wishes.push_back(wish_of(i, i % 2 == 0 ? 0.0F : 1.0F, hows[i % 3]));
      wishes.back().max_tokens = 30;
      asked.push_back(submit(wishes.back()));
    }
    uint64_t drafted = 0;
    for (uint32_t i = 0; i < 16; ++i) {
      const answer got = read(asked[i]).at(0);
      drafted += got.end.n_drafted;
      EXPECT_LE(got.end.n_accepted, got.end.n_drafted);
      wish plain = wishes[i];
      plain.speculation = nullptr;
      EXPECT_EQ(got.tokens, alone(plain)) << "request " << i;
    }
    EXPECT_GT(drafted, 0U);
    EXPECT_EQ(report()["speculation"]["drafted"], drafted);
    expect_no_blocks();
    for (bitnet_request* r : requests_) bitnet_request_close(r);
    requests_.clear();
    bitnet_scheduler_close(scheduler_);
    scheduler_ = nullptr;
  }
}

TEST_F(speculation, drafts_follow_the_grammar) {
  const auto how = speculation_of(BITNET_SPECULATION_DRAFT, demo_.model);
  for (uint32_t seed = 0; seed < 8; ++seed) {
    wish w = wish_of(seed, 1, &how);
    w.grammar = "root ::= ([a-e]+ \" \")+ \".\"";
    w.max_tokens = 30;
    expect_same_alone(w);
  }
}

// What ends thinking is no draft's, and rejects one.
TEST_F(speculation, thinking_ends_at_the_same_token) {
  const auto look_up = speculation_of(BITNET_SPECULATION_NGRAM);
  const auto model = speculation_of(BITNET_SPECULATION_DRAFT, demo_.model);
  for (uint32_t seed = 0; seed < 12; ++seed)
    for (const auto* how : {&look_up, &model}) {
      wish w = wish_of(seed, seed % 2 == 0 ? 0.0F : 1.0F, how);
      w.max_tokens = 30;
      w.reasoning_budget = static_cast<int32_t>(seed);
      expect_same_alone(w);
    }
}

TEST_F(speculation, invalid_options_are_rejected_with_advice) {
  const auto of_other = [&](bitnet_speculation s) {
    const wish w = wish_of(1, 0, &s);
    const bitnet_sampling sampling = sampling_of(w, 0);
    const bitnet_generation g = generation_of(w, sampling);
    bitnet_generation_result r{};
    r.struct_size = sizeof r;
    error_ = blank_error();
    const auto status =
        bitnet_generate(demo_.session, w.prompt.data(), w.prompt.size(), &g, &r, &error_);
    return std::pair(status, std::string(error_.message));
  };
  const auto file =
      scratch_.write("small.gguf", bitnet::tests::as_text(bitnet::tests::small_hybrid().build()));
  bitnet_model* other = nullptr;
  ASSERT_EQ(bitnet_model_open(demo_.runtime, file.c_str(), nullptr, &other, &error_), BITNET_OK);
  auto long_draft = speculation_of(BITNET_SPECULATION_NGRAM);
  long_draft.n_max = 100000;
  auto short_draft = speculation_of(BITNET_SPECULATION_NGRAM);
  short_draft.n_max = 4;
  short_draft.n_min = 5;
  const struct {
    bitnet_speculation how;
    const char* says;
  } rows[] = {{speculation_of(BITNET_SPECULATION_DRAFT, other), "another vocabulary"},
              {speculation_of(BITNET_SPECULATION_DRAFT), "needs one"},
              {speculation_of(9), "type of speculation is 9"},
              {long_draft, "expected 1 to 256"},
              {short_draft, "smaller n_min"}};
  for (const auto& row : rows) {
    const auto [status, message] = of_other(row.how);
    EXPECT_EQ(status, BITNET_INVALID_ARGUMENT) << message;
    EXPECT_NE(message.find(row.says), std::string::npos) << message;
  }
  EXPECT_EQ(bitnet_session_length(demo_.session), 0U);
  bitnet_model_close(other);
}

}  // namespace
