// BPE whose merges join characters: Gemma 4 and its like, and the vocabulary without white space.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.hpp"
#include "vocabularies.hpp"

namespace bitnet::tokenizer {
namespace {

using namespace testing_support;  // NOLINT(google-build-using-namespace): test vocabularies

TEST(characters, merge_across_words_and_never_across_line_ends) {
  vocabulary_data v = character_vocabulary("gemma4", "");
  for (const char* text : {"x▁y", "x\ny"}) add(v, text, token_type::normal);
  for (const char* merge : {"x ▁", "x▁ y", "x \n", "x\n y"}) v.merges.emplace_back(merge);
  const tokenizer t = made(std::move(v));
  EXPECT_EQ(encoded(t, "x y"), ids{*t.find("x▁y")});
  EXPECT_EQ(encoded(t, "x\ny"), (ids{*t.find("x"), *t.find("<0x0A>"), *t.find("y")}));
  EXPECT_EQ(encoded(t, "fox\r\ny").size(), 5u) << "a carriage return is a letter like others";
}

TEST(characters, a_run_of_line_ends_that_is_a_token_needs_no_merges_with_gemma4) {
  const struct {
    const char* model;
    const char* pre;
    bool whole;
  } rows[] = {{"gemma4", "", true},
              {"gemma4", "default", true},
              {"gpt2", "gemma4", true},
              {"gpt2", "granite-embed-multi-311m", true},
              {"gpt2", "sarvam-moe", false}};
  for (const auto& r : rows) {
    const tokenizer t = made(character_vocabulary(r.model, r.pre));
    const token feed = *t.find("<0x0A>");
    const ids whole = {*t.find("\n\n\n")};
    EXPECT_EQ(encoded(t, "\n\n\n"), r.whole ? whole : ids(3, feed)) << r.pre;
    EXPECT_EQ(encoded(t, "\n\n"), ids(2, feed)) << r.pre;
    EXPECT_EQ(encoded(t, "\n\n\n\n"), ids(4, feed)) << "only whole runs";
  }
}

TEST(characters, without_a_token_become_bytes_all_or_none) {
  vocabulary_data v = character_vocabulary("gemma4", "");
  const tokenizer t = made(v);
  EXPECT_EQ(encoded(t, "é"), (ids{*t.find("<0xC3>"), *t.find("<0xA9>")}));
  v.tokens[4 + 0xA9] = "gone";
  v.types[4 + 0xA9] = static_cast<int32_t>(token_type::unused);
  EXPECT_EQ(encoded(made(v), "éé"), (ids{3, 3})) << "one unknown token for a character";
  v.unknown = -1;
  const auto got = made(v).encode("é", {});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().status, BITNET_BAD_DATA);
  EXPECT_NE(got.error().message.find("\\xc3\\xa9"), std::string::npos) << got.error().message;
}

TEST(characters, a_step_that_is_no_token_becomes_bytes) {
  vocabulary_data v = character_vocabulary("gpt2", "sarvam-moe");
  add(v, "JQZ", token_type::normal);
  for (const char* merge : {"J Q", "JQ Z"}) v.merges.emplace_back(merge);
  const tokenizer t = made(std::move(v));
  EXPECT_EQ(encoded(t, "JQZ"), ids{*t.find("JQZ")}) << "through what is no token";
  EXPECT_EQ(encoded(t, "JQJ"), (ids{*t.find("<0x4A>"), *t.find("<0x51>"), *t.find("<0x4A>")}));
}

TEST(characters, byte_tokens_may_be_normal_and_never_come_from_their_text) {
  vocabulary_data v = character_vocabulary("gpt2", "granite-embed-multi-311m");
  for (size_t i = 4; i < 260; ++i) v.types[i] = static_cast<int32_t>(token_type::normal);
  for (const char* text : {"<0", "<0x", "<0x4", "<0x41"}) add(v, text, token_type::normal);
  for (const char* merge : {"< 0", "<0 x", "<0x 4", "<0x4 1", "<0x41 >"}) {
    v.merges.emplace_back(merge);
  }
  const tokenizer t = made(std::move(v));
  EXPECT_EQ(decoded(t, encoded(t, "Ω<0x41>")), "Ω<0x41>");
  EXPECT_EQ(std::ranges::count(encoded(t, "<0x41>"), *t.find("<0x41>")), 0);
  EXPECT_EQ(*t.piece(*t.find("<0x41>"), false, false), "A");
}

TEST(characters, come_back_in_a_stream_when_their_bytes_are_whole) {
  const tokenizer t = made(character_vocabulary("gemma4", ""));
  const ids got = encoded(t, " the 😀");
  utf8_stream stream;
  std::vector<std::string> shown;
  for (const token id : got) shown.push_back(stream.push(*t.piece(id, false, false)));
  EXPECT_EQ(shown, (std::vector<std::string>{" the", " ", "", "", "", "😀"}));
  EXPECT_EQ(stream.finish(), "");
}

TEST(characters, a_mark_in_the_text_is_a_blank_afterwards) {
  const tokenizer t = made(character_vocabulary("gemma4", ""));
  EXPECT_EQ(encoded(t, "the▁fox"), encoded(t, "the fox"));
  EXPECT_EQ(decoded(t, encoded(t, " the")), " the") << "no space is put or taken in front";
}

TEST(characters, begin_of_text_is_put_by_gemma4_whatever_the_file_says) {
  const struct {
    const char* model;
    const char* pre;
    std::optional<bool> file;
    bool put;
    const char* note;  // "" = none
  } rows[] = {{"gemma4", "", {}, true, ""},
              {"gemma4", "", true, true, ""},
              {"gemma4", "", false, true, "add_bos_token is false"},
              {"gpt2", "granite-embed-multi-311m", false, true, "add_bos_token is false"},
              {"gpt2", "sarvam-moe", {}, false, ""},
              {"gpt2", "sarvam-moe", true, true, ""},
              {"gpt2", "whitespace", {}, false, ""},
              {"gpt2", "llama-bpe", false, false, ""}};
  for (const auto& r : rows) {
    vocabulary_data v = character_vocabulary(r.model, r.pre);
    v.add_bos = r.file;
    const tokenizer t = made(std::move(v));
    EXPECT_EQ(t.adds_bos(), r.put) << r.pre;
    EXPECT_EQ(t.note().empty(), std::string(r.note).empty()) << r.pre << t.note();
    EXPECT_NE(t.note().find(r.note), std::string::npos) << r.pre;
  }
}

TEST(characters, of_gemma4_have_no_default_for_special_tokens) {
  vocabulary_data v = character_vocabulary("gemma4", "");
  v.bos = v.eos = v.unknown = std::nullopt;
  const tokenizer t = made(v);
  EXPECT_FALSE(t.bos() || t.eos() || t.unknown());
  EXPECT_EQ(t.kind(), "gemma4");
  v.model = "gpt2";
  EXPECT_EQ(made(std::move(v)).bos(), 11);
}

TEST(whitespace, goes_away_and_what_is_unknown_is_one_token) {
  for (const char* model : {"gpt2", "whitespace"}) {
    vocabulary_data v = character_vocabulary(model, "whitespace", "");
    for (size_t i = 4; i < 260; ++i) v.tokens[i] = "gone" + std::to_string(i);
    for (size_t i = 4; i < 260; ++i) v.types[i] = static_cast<int32_t>(token_type::normal);
    v.tokens[4] = "";  // as a converter left it
    const tokenizer t = made(std::move(v));
    const token the = *t.find("the");
    const token fox = *t.find("fox");
    EXPECT_EQ(encoded(t, " the\n\u3000fox\t"), (ids{the, fox})) << model;
    EXPECT_EQ(encoded(t, "the😀Ωfox"), (ids{the, 3, 3, fox})) << model;
    EXPECT_EQ(decoded(t, {the, fox}), "thefox") << model;
    EXPECT_EQ(decoded(t, {4}), "[EMPTY_4]") << model;
    EXPECT_EQ(t.kind(), model);
  }
}

TEST(whitespace, letters_become_small_where_the_file_asks) {
  vocabulary_data v = character_vocabulary("whitespace", "whitespace", "");
  const ids apart = encoded(made(v), "FOX");
  EXPECT_EQ(apart.size(), 3u);
  v.lowercase = true;
  const tokenizer t = made(v);
  EXPECT_EQ(encoded(t, "FOX fox"), ids(2, *t.find("fox")));
  EXPECT_EQ(decoded(t, encoded(t, "İÉ")), "i\u0307é");
  v.model = "gemma4";
  EXPECT_EQ(decoded(made(std::move(v)), {}), "");
}

}  // namespace
}  // namespace bitnet::tokenizer
