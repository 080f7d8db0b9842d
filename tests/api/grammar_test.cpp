// Generation by a grammar through the C API, with the demo model. What each grammar's texts are is
// written a second time, as a function that reads a text once from left to right.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "../demo_model.hpp"
#include "bitnet/bitnet.h"

namespace {

enum class verdict : uint8_t { no, begun, whole };

bool is_small(char c) {
  return c >= 'a' && c <= 'z';
}

verdict words(const std::string& text) {
  int n_words = 0;
  int letters = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '.' && letters > 0) return i + 1 == text.size() ? verdict::whole : verdict::no;
    if (text[i] == ' ' && (n_words == 0 || letters > 0) && n_words < 5) {
      ++n_words;
      letters = 0;
    } else if (!is_small(text[i]) || n_words == 0 || ++letters > 6) {
      return verdict::no;
    }
  }
  return verdict::begun;
}

verdict numbers(const std::string& text) {
  std::string number;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (i == 0) {
      if (c != '[') return verdict::no;
    } else if (c == ',' || c == ']') {
      if (number.empty() || number == "-") return verdict::no;
      number.clear();
      if (c == ']') return i + 1 == text.size() ? verdict::whole : verdict::no;
    } else {
      const bool digit = c >= '0' && c <= '9';
      if (c == '-' ? !number.empty() : !digit) return verdict::no;
      if (number == "0" || (c == '0' && number == "-")) return verdict::no;
      number += c;
      if (number.size() > (number[0] == '-' ? 5U : 4U)) return verdict::no;
    }
  }
  return verdict::begun;
}

verdict brackets(const std::string& text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i > 0 && depth == 0) return verdict::no;
    if (text[i] == '(')
      ++depth;
    else if (text[i] == ')')
      --depth;
    else if (text[i] != 'a' && text[i] != 'b')
      return verdict::no;
    if (depth < 0) return verdict::no;
  }
  return text.empty() || depth > 0 ? verdict::begun : verdict::whole;
}

verdict letters_of_others(const std::string& text) {
  const std::string one = "\xc3\xa9";
  const std::string two = "\xe4\xb8\xad";
  std::size_t at = 0;
  int n = 0;
  for (; at < text.size() && n < 4; ++n) {
    const std::string rest = text.substr(at);
    if (rest.starts_with(one) || rest.starts_with(two))
      at += rest.starts_with(one) ? one.size() : two.size();
    else
      return one.starts_with(rest) || two.starts_with(rest) ? verdict::begun : verdict::no;
  }
  if (at < text.size()) return verdict::no;
  return n < 2 ? verdict::begun : verdict::whole;
}

struct form {
  const char* name;
  const char* grammar;
  verdict (*judge)(const std::string& text);
};

const form forms[] = {
    {"words", "root ::= (\" \" [a-z]{1,6}){1,5} \".\"", words},
    {"numbers",
     "# a list\nroot ::= \"[\" number (\",\" number)* \"]\"\n"
     "number ::= \"0\" | \"-\"? [1-9] [0-9]{0,3}",
     numbers},
    {"brackets", "root ::= \"(\" root* \")\" | [ab]", brackets},
    {"letters of others", "root ::= [\\u00e9\\u4e2d]{2,4}", letters_of_others},
};

class grammars : public testing::Test {
 protected:
  void SetUp() override {
    error_.struct_size = sizeof error_;
    bitnet_runtime_options options;
    bitnet_runtime_defaults(&options, sizeof options);
    options.n_threads = 2;
    ASSERT_EQ(bitnet_runtime_open(&options, &runtime_, &error_), BITNET_OK) << error_.message;
    const std::string file = bitnet::test::demo_model();
    if (file.empty()) GTEST_SKIP() << "no demo model in models/";
    const bitnet_status status =
        bitnet_model_open(runtime_, file.c_str(), nullptr, &model_, &error_);
    if (status == BITNET_UNAVAILABLE) GTEST_SKIP() << error_.message;
    ASSERT_EQ(status, BITNET_OK) << error_.message;
    bitnet_model_info info{};
    info.struct_size = sizeof info;
    bitnet_model_describe(model_, &info, nullptr);
    n_vocab_ = info.n_vocab;
    for (uint32_t id = 0; id < n_vocab_; ++id) texts_.push_back(text_of(static_cast<int>(id)));
    bitnet_sampling_defaults(&sampling_, sizeof sampling_);
    sampling_.seed = 1;
    bitnet_generation_defaults(&generation_, sizeof generation_);
    generation_.sampling = &sampling_;
    generation_.max_tokens = 60;
  }
  void TearDown() override {
    for (bitnet_session* s : sessions_) bitnet_session_close(s);
    bitnet_model_close(model_);
    bitnet_runtime_close(runtime_);
  }

  bitnet_session* session(bool all_logits = false) {
    bitnet_session_options options;
    bitnet_session_defaults(&options, sizeof options);
    options.low_memory = all_logits ? 1 : 0;
    options.n_context = 256;
    options.deterministic = 1;
    bitnet_session* s = nullptr;
    EXPECT_EQ(bitnet_session_open(model_, &options, &s, &error_), BITNET_OK) << error_.message;
    sessions_.push_back(s);
    return s;
  }

  std::vector<bitnet_token> tokens(const std::string& text) {
    std::vector<bitnet_token> ids(text.size() + 1);
    uint64_t n = 0;
    EXPECT_EQ(bitnet_tokenize(model_, {text.data(), text.size()}, BITNET_TOKENIZE_MODEL_BOS,
                              ids.data(), ids.size(), &n, &error_),
              BITNET_OK);
    ids.resize(n);
    return ids;
  }

  // As the text of an answer has it: with a token in front.
  std::string text_of(bitnet_token id) {
    const std::vector<bitnet_token> ids{tokens("a").back(), id};
    const auto text = [&](uint64_t n) {
      uint64_t needed = 0;
      bitnet_detokenize(model_, ids.data(), n, 0, nullptr, 0, &needed, nullptr);
      std::string out(needed, '\0');
      bitnet_detokenize(model_, ids.data(), n, 0, out.data(), needed, &needed, nullptr);
      return out;
    };
    return text(2).substr(text(1).size());
  }

  struct generated {
    bitnet_status status = BITNET_OK;
    std::string text;
    std::vector<bitnet_token> ids;
    bitnet_generation_result result{};
  };
  generated generate(bitnet_session* s, const std::string& grammar,
                     const std::string& prompt = "Once upon a time") {
    generated out;
    out.ids.resize(300);
    out.result.struct_size = sizeof out.result;
    bitnet_generation g = generation_;
    g.grammar = {grammar.data(), grammar.size()};
    g.out_tokens = out.ids.data();
    g.out_capacity = out.ids.size();
    user_ = {&out.text, this};
    g.text_user = &user_;
    g.text = [](void* user, bitnet_str piece) {
      const auto& to = *static_cast<receiver*>(user);
      to.text->append(piece.data, piece.size);
      if (to.test->at_text_) to.test->at_text_();
      return int32_t{0};
    };
    const auto ids = tokens(prompt);
    out.status = bitnet_generate(s, ids.data(), ids.size(), &g, &out.result, &error_);
    out.ids.resize(out.result.n_generated);
    return out;
  }
  generated generate_well(const std::string& grammar) {
    generated out = generate(session(), grammar);
    EXPECT_EQ(out.status, BITNET_OK) << error_.message;
    return out;
  }

  std::string rejection(const std::string& grammar) {
    EXPECT_NE(generate(session(), grammar).status, BITNET_OK) << grammar;
    return error_.message;
  }

  struct receiver {
    std::string* text;
    grammars* test;
  };
  bitnet_error error_{};
  bitnet_runtime* runtime_ = nullptr;
  bitnet_model* model_ = nullptr;
  std::vector<bitnet_session*> sessions_;
  uint32_t n_vocab_ = 0;
  std::vector<std::string> texts_;  // by id
  bitnet_sampling sampling_{};
  bitnet_generation generation_{};
  receiver user_{};
  std::function<void()> at_text_;
};

TEST_F(grammars, greedy_takes_the_largest_allowed_logit) {
  for (const form& f : forms) {
    sampling_.temperature = 0;
    const generated got = generate_well(f.grammar);
    // The same by hand: all logits, and every token of the vocabulary tried.
    bitnet_session* s = session();
    std::vector<bitnet_token> next = tokens("Once upon a time");
    std::vector<float> logits(n_vocab_);
    std::string text;
    std::vector<bitnet_token> want;
    while (want.size() < 60) {
      ASSERT_EQ(
          bitnet_session_eval(s, next.data(), next.size(), 0, logits.data(), n_vocab_, &error_),
          BITNET_OK)
          << error_.message;
      bitnet_token best = -1;
      for (bitnet_token id = 0; id < static_cast<bitnet_token>(n_vocab_); ++id) {
        const bool may_come =
            bitnet_token_ends_generation(model_, id) != 0
                ? f.judge(text) == verdict::whole
                : !texts_[static_cast<std::size_t>(id)].empty() &&
                      f.judge(text + texts_[static_cast<std::size_t>(id)]) != verdict::no;
        if (may_come && (best < 0 || logits[static_cast<std::size_t>(id)] >
                                         logits[static_cast<std::size_t>(best)]))
          best = id;
      }
      ASSERT_GE(best, 0) << f.name << ": " << text;
      want.push_back(best);
      if (bitnet_token_ends_generation(model_, best) != 0) break;
      text += texts_[static_cast<std::size_t>(best)];
      next = {best};
    }
    EXPECT_EQ(got.ids, want) << f.name << ": " << got.text << " for " << text;
  }
}

TEST_F(grammars, texts_keep_to_them_and_seeds_count) {
  for (const form& f : forms) {
    std::vector<std::string> texts;
    for (uint32_t seed = 0; seed < 12; ++seed) {
      sampling_.seed = seed;
      sampling_.temperature = seed % 3 == 0 ? 0.8F : 3;
      sampling_.top_k = seed % 4 == 0 ? 0 : 40;
      sampling_.top_p = seed % 4 == 1 ? 1 : 0.95F;
      sampling_.repeat_penalty = seed % 5 == 0 ? 1.3F : 1;
      const generated one = generate_well(f.grammar);
      ASSERT_NE(f.judge(one.text), verdict::no) << f.name << ": " << one.text;
      const bool ended = one.result.stop_reason == BITNET_STOP_EOS;
      ASSERT_EQ(one.result.stop_reason, ended ? BITNET_STOP_EOS : BITNET_STOP_LENGTH);
      ASSERT_TRUE(!ended || f.judge(one.text) == verdict::whole) << f.name << ": " << one.text;
      EXPECT_EQ(generate_well(f.grammar).ids, one.ids) << "the same seed";
      texts.push_back(one.text);
    }
    std::ranges::sort(texts);
    EXPECT_GT(std::ranges::unique(texts).begin() - texts.begin(), 2)
        << f.name << ": seeds say the same";
  }
}

// Where few tokens may not come, a step asks for the largest logits; that must not matter.
TEST_F(grammars, the_largest_logits_are_enough) {
  for (const char* grammar :
       {"root ::= .*", "root ::= [^z]*", "root ::= [^,]*", "root ::= [a-z ]*"}) {
    for (uint32_t seed = 0; seed < 6; ++seed) {
      sampling_.seed = seed;
      sampling_.temperature = seed == 0 ? 0 : 1.5F;
      sampling_.repeat_penalty = seed == 1 ? 1.3F : 1;
      const generated some = generate(session(), grammar);
      const generated all = generate(session(true), grammar);
      ASSERT_EQ(some.status, BITNET_OK) << error_.message;
      EXPECT_EQ(some.ids, all.ids) << grammar << " seed " << seed << ": " << some.text;
    }
  }
}

// The same session again, with the masks that it kept, with another grammar in between and none.
TEST_F(grammars, sessions_cache_grammar_states_within_a_bound) {
  for (const form& f : forms) {
    const generated want = generate_well(f.grammar);
    bitnet_session* s = session();
    for (const char* grammar : {f.grammar, f.grammar, forms[0].grammar, "", f.grammar}) {
      ASSERT_EQ(bitnet_session_truncate(s, 0, &error_), BITNET_OK);
      const generated one = generate(s, grammar);
      ASSERT_EQ(one.status, BITNET_OK) << error_.message;
      if (grammar == f.grammar) {
        EXPECT_EQ(one.ids, want.ids) << f.name;
      }
    }
  }
}

TEST_F(grammars, the_backend_may_be_loaded_again_in_mid_text) {
  for (const uint32_t policy : {BITNET_RELOAD_MIGRATE, BITNET_RELOAD_RECOMPUTE}) {
    const generated want = generate_well(forms[0].grammar);
    int pieces = 0;
    at_text_ = [&] {
      if (++pieces != 2) return;
      bitnet_reload_options options;
      bitnet_reload_defaults(&options, sizeof options);
      options.policy = policy;
      options.force = 1;
      bitnet_error why{};
      why.struct_size = sizeof why;
      EXPECT_EQ(bitnet_backend_reload(runtime_, "cpu", &options, &why), BITNET_OK) << why.message;
    };
    bitnet_session* s = session();
    const generated got = generate(s, forms[0].grammar);
    ASSERT_EQ(got.status, BITNET_OK) << error_.message;
    EXPECT_EQ(got.ids, want.ids);
    EXPECT_GT(pieces, 2);
    at_text_ = nullptr;
  }
}

TEST_F(grammars, end_as_the_text_does) {
  // What may end it, ends it; nothing else may come.
  const generated yes = generate_well("root ::= \" yes\"");
  EXPECT_EQ(yes.text, " yes");
  EXPECT_EQ(yes.result.stop_reason, BITNET_STOP_EOS);
  // A text that is whole, without tokens that end one.
  sampling_.ignore_eos = 1;
  const generated whole = generate_well("root ::= \" yes\"");
  EXPECT_EQ(whole.text, " yes");
  EXPECT_EQ(whole.result.stop_reason, BITNET_STOP_GRAMMAR);
  EXPECT_EQ(generate_well("root ::= \"\"").result.stop_reason, BITNET_STOP_GRAMMAR);
  sampling_.ignore_eos = 0;
  EXPECT_EQ(generate_well("root ::= \"\"").text, "");
  // A stop string still ends the text, in the middle of what the grammar asks for.
  const std::string stop = "cc";
  const bitnet_str stops[] = {{stop.data(), stop.size()}};
  generation_.stop_strings = stops;
  generation_.n_stop_strings = 1;
  const generated stopped = generate_well("root ::= \"aabbccdd\"");
  EXPECT_EQ(stopped.text, "aabb");
  EXPECT_EQ(stopped.result.stop_reason, BITNET_STOP_STRING);
  generation_.n_stop_strings = 0;
  // A stop token too, as an end where the text is whole.
  const bitnet_token dot = tokens("a.").back();
  ASSERT_EQ(texts_[static_cast<std::size_t>(dot)], ".");
  generation_.stop_tokens = &dot;
  generation_.n_stop_tokens = 1;
  sampling_.ignore_eos = 1;
  const generated by_token = generate_well("root ::= \" yes\"");
  EXPECT_EQ(by_token.text, " yes");
  EXPECT_EQ(by_token.result.stop_reason, BITNET_STOP_TOKEN);
  generation_.n_stop_tokens = 0;
  // And as many tokens as were asked for.
  generation_.max_tokens = 3;
  EXPECT_EQ(generate_well("root ::= [a-z ]*").result.stop_reason, BITNET_STOP_LENGTH);
}

TEST_F(grammars, biases_apply_to_allowed_tokens) {
  sampling_.temperature = 0;
  std::vector<bitnet_logit_bias> biases;
  for (bitnet_token id = 0; id < static_cast<bitnet_token>(n_vocab_); ++id)
    if (texts_[static_cast<std::size_t>(id)].find('y') != std::string::npos)
      biases.push_back({id, -std::numeric_limits<float>::infinity()});
  sampling_.logit_bias = biases.data();
  sampling_.logit_bias_size = sizeof(bitnet_logit_bias);
  sampling_.n_logit_bias = static_cast<uint32_t>(biases.size());
  EXPECT_EQ(generate_well("root ::= \"yes\" | \"no\"").text, "no");
  EXPECT_NE(rejection("root ::= \"yes\"").find("every one that a grammar allows"),
            std::string::npos);
  for (auto& b : biases) b.bias = 100;
  EXPECT_EQ(generate_well("root ::= \"yes\" | \"no\"").text, "yes");
}

TEST_F(grammars, are_checked_before_anything_is_evaluated) {
  bitnet_session* s = session();
  EXPECT_EQ(generate(s, "root ::= \"a\"\nroot ::= \"b\"").status, BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(error_.message).find("the grammar, line 2, column 1: the rule 'root' is"),
            0U)
      << error_.message;
  EXPECT_EQ(bitnet_session_length(s), 0U);
  EXPECT_EQ(rejection("root ::= root \"a\" | \"b\"").find("the grammar, line 1, column 1: "), 0U);
  EXPECT_NE(rejection("root ::= \"\xff\"").find("no UTF-8"), std::string::npos);
  bitnet_generation g = generation_;
  g.grammar = {nullptr, 3};
  bitnet_generation_result result{};
  result.struct_size = sizeof result;
  const auto ids = tokens("Once");
  EXPECT_EQ(bitnet_generate(s, ids.data(), ids.size(), &g, &result, &error_),
            BITNET_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("grammar is NULL, with a count of 3"),
            std::string::npos);

  const std::string good = forms[1].grammar;
  EXPECT_EQ(bitnet_grammar_check({good.data(), good.size()}, &error_), BITNET_OK);
  EXPECT_EQ(bitnet_grammar_check({"root", 4}, &error_), BITNET_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("line 1, column 5"), std::string::npos);
  EXPECT_EQ(bitnet_grammar_check({nullptr, 4}, &error_), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(bitnet_grammar_check({nullptr, 0}, &error_), BITNET_INVALID_ARGUMENT);
  const std::string deep = "root ::= " + std::string(200, '(');
  EXPECT_EQ(bitnet_grammar_check({deep.data(), deep.size()}, nullptr), BITNET_UNSUPPORTED);
}

// The same form as a schema and as a grammar has the same tokens, and a session keeps them apart.
TEST_F(grammars, json_schemas_are_followed_as_their_grammar_is) {
  const std::string schema =
      R"({"type":"object","properties":{"a":{"enum":[1,"x"]}},"required":["a"],
          "additionalProperties":false})";
  const std::string same = R"g(root ::= "{\"a\":" " "? ("1" | "\"x\"") "}")g";
  bitnet_session* s = session();
  for (uint32_t seed = 0; seed < 4; ++seed) {
    sampling_.seed = seed;
    const generated by_grammar = generate(s, same);
    ASSERT_EQ(by_grammar.status, BITNET_OK) << error_.message;
    ASSERT_EQ(bitnet_session_truncate(s, 0, &error_), BITNET_OK);
    generation_.json_schema = {schema.data(), schema.size()};
    const generated by_schema = generate(s, "");
    ASSERT_EQ(by_schema.status, BITNET_OK) << error_.message;
    EXPECT_EQ(by_schema.text, by_grammar.text);
    EXPECT_EQ(by_schema.ids, by_grammar.ids);
    ASSERT_EQ(bitnet_session_truncate(s, 0, &error_), BITNET_OK);
    EXPECT_EQ(generate(s, same).status, BITNET_INVALID_ARGUMENT) << "both";
    EXPECT_NE(std::string(error_.message).find("give one of them"), std::string::npos);
    generation_.json_schema = {nullptr, 0};
  }
  generation_.json_schema = {nullptr, 3};
  EXPECT_EQ(generate(s, "").status, BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(bitnet_json_schema_check({schema.data(), schema.size()}, &error_), BITNET_OK);
  EXPECT_EQ(bitnet_json_schema_check({"{\"not\":{}}", 10}, &error_), BITNET_UNSUPPORTED);
  EXPECT_NE(std::string(error_.message).find("at #/not"), std::string::npos) << error_.message;
  EXPECT_EQ(bitnet_json_schema_check({"", 0}, nullptr), BITNET_INVALID_ARGUMENT);
}

TEST_F(grammars, beyond_their_limits_fail) {
  std::string text = "root ::= ";
  for (int i = 0; i < 40'000; ++i)
    text +=
        (i > 0 ? " | " : "") + std::string("[a-z] root \"") + std::string(1 + i % 5, 'b') + "\"";
  bitnet_session* s = session();
  EXPECT_EQ(generate(s, text + " | \"x\"").status, BITNET_UNSUPPORTED) << error_.message;
  EXPECT_NE(std::string(error_.message).find("make it say less at once"), std::string::npos)
      << error_.message;
  EXPECT_EQ(generate(s, "root ::= \" yes\"", "").text, " yes") << "the session goes on";
}

}  // namespace
