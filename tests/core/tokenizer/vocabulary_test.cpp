// What a file may claim about its vocabulary: each row breaks one thing, and the message names it.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "tokenizer/tokenizer.hpp"
#include "vocabularies.hpp"

namespace bitnet::tokenizer {
namespace {

using namespace testing_support;  // NOLINT(google-build-using-namespace): test vocabularies

struct row {
  const char* name;
  bool spm;
  std::function<void(vocabulary_data&)> damage;
  bitnet_status expected;  // BITNET_OK: it is allowed
  const char* part;        // of the message
};
void PrintTo(const row& r, std::ostream* os) {
  *os << r.name;
}

class damaged : public testing::TestWithParam<row> {};

TEST_P(damaged, is_rejected_or_allowed_as_the_row_says) {
  const row& r = GetParam();
  vocabulary_data v = r.spm ? spm_vocabulary() : bpe_vocabulary();
  r.damage(v);
  const auto got = tokenizer::make(std::move(v));
  EXPECT_EQ(got ? BITNET_OK : got.error().status, r.expected) << (got ? "" : got.error().message);
  if (got) return;
  EXPECT_NE(got.error().message.find(r.part), std::string::npos) << got.error().message;
}

using data = vocabulary_data&;
constexpr int64_t huge = std::numeric_limits<int64_t>::max();

const row rows[] = {
    {"untouched_bpe", false, [](data) {}, BITNET_OK, ""},
    {"untouched_spm", true, [](data) {}, BITNET_OK, ""},
    {"no_model", false, [](data v) { v.model = ""; }, BITNET_BAD_DATA, "tokenizer.ggml.model"},
    {"other_model", false, [](data v) { v.model = "t5"; }, BITNET_UNSUPPORTED, "\"t5\" (Unigram)"},
    {"rwkv", false, [](data v) { v.model = "rwkv"; }, BITNET_UNSUPPORTED, "\"gemma4\""},
    {"model_with_control_bytes", false, [](data v) { v.model = "a\n\x1b"; }, BITNET_UNSUPPORTED,
     "\"a\\x0a\\x1b\""},
    {"no_tokens", false, [](data v) { v.tokens.clear(); }, BITNET_BAD_DATA, "empty"},
    {"empty_token", false, [](data v) { v.tokens[5] = ""; }, BITNET_BAD_DATA, "token 5"},
    {"empty_spm_token", true, [](data v) { v.tokens[5] = ""; }, BITNET_BAD_DATA, "token 5"},
    {"long_token", false, [](data v) { v.tokens[5].assign(4097, 'x'); }, BITNET_BAD_DATA, "4097"},
    {"longest_token", false, [](data v) { v.tokens[5].assign(4096, 'x'); }, BITNET_OK, ""},
    {"same_token_twice", false, [](data v) { v.tokens[300] = v.tokens[70]; }, BITNET_BAD_DATA,
     "token 300"},
    {"token_not_utf8", false, [](data v) { v.tokens[9] = "a\xFF"; }, BITNET_BAD_DATA, "\\xff"},
    {"types_short", false, [](data v) { v.types.pop_back(); }, BITNET_BAD_DATA, "token_type"},
    {"types_long", true, [](data v) { v.types.push_back(1); }, BITNET_BAD_DATA, "token_type"},
    {"no_types", false, [](data v) { v.types.clear(); }, BITNET_OK, ""},
    {"type_7", false, [](data v) { v.types[3] = 7; }, BITNET_BAD_DATA, "type 7"},
    {"type_negative", false, [](data v) { v.types[3] = -1; }, BITNET_BAD_DATA, "type -1"},
    {"type_0", false, [](data v) { v.types[300] = 0; }, BITNET_OK, ""},
    {"no_merges", false, [](data v) { v.merges.clear(); }, BITNET_BAD_DATA, "merges"},
    {"merge_without_space", false, [](data v) { v.merges[2] = "ab"; }, BITNET_BAD_DATA, "merge 2"},
    {"merge_empty", false, [](data v) { v.merges[2] = ""; }, BITNET_BAD_DATA, "merge 2"},
    {"merge_without_left", false, [](data v) { v.merges[2] = " a"; }, BITNET_BAD_DATA, "merge 2"},
    {"merge_without_right", false, [](data v) { v.merges[2] = "a "; }, BITNET_BAD_DATA, "merge 2"},
    {"merge_of_no_bytes", false, [](data v) { v.merges[2] = "中 a"; }, BITNET_OK, ""},
    {"merge_not_utf8", false, [](data v) { v.merges[2] = "\xFF a"; }, BITNET_OK, ""},
    {"merge_twice", false, [](data v) { v.merges.push_back(v.merges[0]); }, BITNET_OK, ""},
    {"scores_missing", true, [](data v) { v.scores.clear(); }, BITNET_BAD_DATA, "scores"},
    {"scores_short", true, [](data v) { v.scores.pop_back(); }, BITNET_BAD_DATA, "scores"},
    {"bpe_scores_short", false, [](data v) { v.scores = {1}; }, BITNET_BAD_DATA, "scores"},
    {"score_nan", true, [](data v) { v.scores[260] = NAN; }, BITNET_BAD_DATA, "token 260"},
    {"score_infinite", true, [](data v) { v.scores[260] = -INFINITY; }, BITNET_OK, ""},
    {"byte_short", true, [](data v) { v.tokens[3] = "<0x4>"; }, BITNET_BAD_DATA, "\"<0x4>\""},
    {"byte_signed", true, [](data v) { v.tokens[3] = "<0x-1>"; }, BITNET_BAD_DATA, "\"<0x-1>\""},
    {"byte_no_digit", true, [](data v) { v.tokens[3] = "<0xG0>"; }, BITNET_BAD_DATA, "<0xG0>"},
    {"byte_other_text", true, [](data v) { v.types[260] = 6; }, BITNET_BAD_DATA, "token 260"},
    {"bos_past_the_end", false, [](data v) { v.bos = 100000; }, BITNET_BAD_DATA, "bos_token_id"},
    {"eos_at_the_end", true, [](data v) { v.eos = static_cast<int64_t>(v.tokens.size()); },
     BITNET_BAD_DATA, "eos_token_id"},
    {"eot_negative", false, [](data v) { v.eot = -2; }, BITNET_BAD_DATA, "eot_token_id"},
    {"eom_huge", false, [](data v) { v.eom = huge; }, BITNET_BAD_DATA, "eom_token_id"},
    {"unknown_wraps_to_0", true, [](data v) { v.unknown = int64_t{1} << 32; }, BITNET_BAD_DATA,
     "unknown_token_id"},
    {"separator_past_the_end", false, [](data v) { v.separator = 100000; }, BITNET_BAD_DATA,
     "seperator_token_id"},
    {"padding_past_the_end", false, [](data v) { v.padding = 100000; }, BITNET_BAD_DATA,
     "padding_token_id"},
    {"fim_pre_past_the_end", false, [](data v) { v.infill.pre = 100000; }, BITNET_BAD_DATA,
     "fim_pre_token_id"},
    {"fim_sep_negative", false, [](data v) { v.infill.sep = -2; }, BITNET_BAD_DATA,
     "fim_sep_token_id"},
    {"fim_mid_none", false, [](data v) { v.infill.mid = -1; }, BITNET_OK, ""},
    {"padding_none", false, [](data v) { v.padding = 0xFFFFFFFF; }, BITNET_OK, ""},
};

INSTANTIATE_TEST_SUITE_P(vocabulary, damaged, testing::ValuesIn(rows),
                         [](const auto& row_of) { return row_of.param.name; });

struct characters_row {
  const char* name;
  std::function<void(vocabulary_data&)> damage;
  bitnet_status expected;
  const char* part;
};

TEST(damaged_characters, are_rejected_or_allowed_as_the_row_says) {
  const characters_row damages[] = {
      {"untouched", [](data) {}, BITNET_OK, ""},
      {"no_merges", [](data v) { v.merges.clear(); }, BITNET_BAD_DATA, "merges"},
      {"merge_without_space", [](data v) { v.merges[2] = "ab"; }, BITNET_BAD_DATA, "merge 2"},
      {"merge_without_left", [](data v) { v.merges[2] = " a"; }, BITNET_BAD_DATA, "merge 2"},
      {"merge_not_utf8", [](data v) { v.merges[2] = "\xFF a"; }, BITNET_OK, ""},
      {"merge_of_half_a_character", [](data v) { v.merges[2] = "\xE2\x96 \x81"; }, BITNET_OK, ""},
      {"token_not_utf8", [](data v) { v.tokens[9] = "a\xFF"; }, BITNET_BAD_DATA, "\\xff"},
      {"empty_token", [](data v) { v.tokens[300] = ""; }, BITNET_BAD_DATA, "token 300"},
      {"long_token", [](data v) { v.tokens[300].assign(4097, 'x'); }, BITNET_BAD_DATA, "4097"},
      {"byte_no_digit", [](data v) { v.tokens[9] = "<0xG0>"; }, BITNET_BAD_DATA, "<0xG0>"},
      {"byte_twice", [](data v) { v.tokens[300] = "<0x0a>"; }, BITNET_OK, ""},
      {"no_types", [](data v) { v.types.clear(); }, BITNET_OK, ""},
      {"scores_short", [](data v) { v.scores = {1}; }, BITNET_BAD_DATA, "scores"},
      {"bos_past_the_end", [](data v) { v.bos = 100000; }, BITNET_BAD_DATA, "bos_token_id"},
  };
  for (const characters_row& r : damages) {
    vocabulary_data v = character_vocabulary("gemma4", "");
    r.damage(v);
    const auto got = tokenizer::make(std::move(v));
    EXPECT_EQ(got ? BITNET_OK : got.error().status, r.expected) << r.name;
    if (got) {
      EXPECT_EQ(*got->decode(*got->encode("ab the\n", {}), false), "ab the\n") << r.name;
      continue;
    }
    EXPECT_NE(got.error().message.find(r.part), std::string::npos) << got.error().message;
  }
}

TEST(defaults, are_dropped_where_the_vocabulary_is_too_small_for_them) {
  vocabulary_data v;
  v.model = "gpt2";
  v.tokens = {"a", "b", "ab"};
  v.merges = {"a b"};
  const auto bpe = tokenizer::make(v);
  ASSERT_TRUE(bpe) << bpe.error().message;
  EXPECT_FALSE(bpe->bos());
  EXPECT_FALSE(bpe->eos());
  EXPECT_EQ(*bpe->encode("abb", {}), (std::vector<token>{2, 1}));

  v = {};
  v.model = "llama";
  v.tokens = {"<unk>"};
  v.scores = {0};
  const auto spm = tokenizer::make(v);
  ASSERT_TRUE(spm) << spm.error().message;
  EXPECT_FALSE(spm->bos());
  EXPECT_FALSE(spm->eos());
  EXPECT_EQ(spm->unknown(), 0);
}

TEST(defaults, of_byte_level_vocabularies_is_11) {
  vocabulary_data v = bpe_vocabulary();
  v.bos = v.eos = std::nullopt;
  const auto t = tokenizer::make(std::move(v));
  ASSERT_TRUE(t);
  EXPECT_EQ(t->bos(), 11);
  EXPECT_EQ(t->eos(), 11);
  EXPECT_TRUE(t->ends_generation(11));
}

TEST(defaults, without_types_the_keys_and_texts_say_what_is_no_text) {
  vocabulary_data v = spm_vocabulary();
  v.types.clear();
  v.bos = 1;
  v.eos = 2;
  v.unknown = 0;
  const auto t = tokenizer::make(std::move(v));
  ASSERT_TRUE(t) << t.error().message;
  EXPECT_EQ(*t->decode(std::vector<token>{1, 3 + 'A', 2}, false), "A");
  EXPECT_EQ(*t->encode("\xFF", {}), (std::vector<token>{*t->find("▁"), 3 + 0xFF}));
}

}  // namespace
}  // namespace bitnet::tokenizer
