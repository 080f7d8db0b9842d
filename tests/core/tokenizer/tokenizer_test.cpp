// The public tokenizer: round trips, special tokens, both kinds, messages.
#include "tokenizer/tokenizer.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "vocabularies.hpp"

namespace bitnet::tokenizer {
namespace {

using namespace testing_support;  // NOLINT(google-build-using-namespace): test vocabularies
std::string streamed(const tokenizer& t, const ids& of) {
  std::string out;
  for (size_t i = 0; i < of.size(); ++i) out += *t.piece(of[i], true, i == 0);
  return out;
}

struct round_trip_row {
  const char* name;
  vocabulary_data (*make)();
  const char* why;
};
void PrintTo(const round_trip_row& r, std::ostream* os) {
  *os << r.name << ": " << r.why;
}

class round_trip : public testing::TestWithParam<round_trip_row> {};

TEST_P(round_trip, gives_random_text_back) {
  const tokenizer t = made(GetParam().make());
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const std::string text = random_text(random, random() % 60);
    const ids got = encoded(t, text);
    ASSERT_EQ(decoded(t, got), text);
    ASSERT_EQ(streamed(t, got), text);
  }
}

TEST_P(round_trip, gives_every_single_character_back) {
  const tokenizer t = made(GetParam().make());
  for (char32_t c = 0; c < 0x2600; ++c) {
    if (c == 0x2581) continue;  // SPM's blank
    std::string text;
    append_utf8(text, c);
    ASSERT_EQ(decoded(t, encoded(t, text)), text) << "U+" << std::hex << static_cast<uint32_t>(c);
  }
}

TEST_P(round_trip, takes_a_long_run_of_anything_in_reasonable_time) {
  // A quadratic merge or a backtracking expression runs into the time limit of the test.
  const tokenizer t = made(GetParam().make());
  const size_t size = 1 << 17;
  std::string mixed;
  while (mixed.size() < size) mixed += sentences;
  for (const std::string& text :
       {std::string(size, 'e'), std::string(size, ' '), std::string(size, '\n'),
        std::string(size, '7'), std::string(size, '!'), std::string(size, ' ') + "x", mixed}) {
    ASSERT_EQ(decoded(t, encoded(t, text)), text) << text.substr(0, 4);
  }
}

INSTANTIATE_TEST_SUITE_P(
    vocabularies, round_trip,
    testing::Values(
        round_trip_row{"llama_bpe", [] { return bpe_vocabulary("llama-bpe"); }, "ignore_merges"},
        round_trip_row{"gpt_2", [] { return bpe_vocabulary("gpt-2"); }, "no last alternative"},
        round_trip_row{"falcon", [] { return bpe_vocabulary("falcon"); }, "three expressions"},
        round_trip_row{"qwen2", [] { return bpe_vocabulary("qwen2"); }, "single digits"},
        round_trip_row{"unnamed", [] { return bpe_vocabulary(""); }, "four expressions"},
        round_trip_row{"gemma4", [] { return character_vocabulary("gemma4", ""); },
                       "characters, and bytes for what is no token"},
        round_trip_row{"sarvam_moe", [] { return character_vocabulary("gpt2", "sarvam-moe"); },
                       "the same without whole line ends"},
        round_trip_row{"spm", [] { return spm_vocabulary(); }, "a space in front"},
        round_trip_row{"spm_unspaced",
                       [] {
                         auto v = spm_vocabulary();
                         v.add_space_prefix = false;
                         return v;
                       },
                       "add_space_prefix off"}),
    [](const auto& row_of) { return row_of.param.name; });

TEST(special_tokens, control_tokens_come_from_text_only_when_asked_for) {
  const tokenizer t = made(bpe_vocabulary());
  const token eot = *t.find("<|eot_id|>");
  const std::string text = "the fox<|eot_id|>the";
  const ids plain = encoded(t, text);
  EXPECT_EQ(std::ranges::count(plain, eot), 0);
  EXPECT_EQ(decoded(t, plain), text);

  const ids parsed = encoded(t, text, true);
  EXPECT_EQ(std::ranges::count(parsed, eot), 1);
  EXPECT_EQ(decoded(t, parsed, true), text);
  EXPECT_EQ(decoded(t, parsed, false), "the foxthe");
}

TEST(special_tokens, user_defined_ones_are_always_cut_out_longest_first) {
  const tokenizer t = made(bpe_vocabulary());
  const token tool = *t.find("<tool>");
  const token tool_fox = *t.find("<tool>fox");
  EXPECT_EQ(encoded(t, "<tool>fox<tool>"), (ids{tool_fox, tool}));
  EXPECT_EQ(decoded(t, {tool_fox, tool}), "<tool>fox<tool>");
}

struct cut_row {
  const char* text;
  ids expected;
  const char* why;
};

TEST(special_tokens, overlaps_go_to_the_longest_then_the_lowest_then_the_leftmost) {
  vocabulary_data v = bpe_vocabulary();
  const auto n = static_cast<token>(v.tokens.size());
  for (const char* text : {"[ab]", "b]c", "[a", "aaa", "aa", "b]d[", "b]"}) {
    add(v, text, token_type::user_defined);
  }
  const tokenizer t = made(std::move(v));
  const token a = *t.find("a");
  const token c = *t.find("c");
  const token open = *t.find("[");
  const token b = *t.find("b");
  const cut_row rows[] = {
      {"[ab]c", {n, c}, "4 bytes win over 3 that overlap their end"},
      {"[ab", {n + 2, b}, "the longer one is not there"},
      {"b]c", {n + 1}, "what lies inside a longer one is part of it"},
      {"[b]d[a", {open, n + 5, a}, "what overlaps a longer one is gone, the rest is text"},
      {"aaaa", {n + 3, a}, "leftmost of the same token"},
      {"aaaaa", {n + 3, n + 4}, "the next shorter one fits what is left"},
      {"[ab]b]", {n, n + 6}, "side by side"},
      {"[a[ab]", {n + 2, n}, "each where it stands"},
  };
  for (const cut_row& r : rows) EXPECT_EQ(encoded(t, r.text), r.expected) << r.why;
}

TEST(special_tokens, bos_is_added_as_asked) {
  using bos = encode_options::bos;
  vocabulary_data v = bpe_vocabulary("gpt-2");
  const auto bos_id = static_cast<token>(*v.bos);
  const tokenizer silent = made(v);
  v.add_bos = true;
  const tokenizer asking = made(v);
  EXPECT_FALSE(silent.adds_bos());
  EXPECT_TRUE(asking.adds_bos());
  EXPECT_TRUE(made(bpe_vocabulary("llama-bpe")).adds_bos()) << "the default of llama-bpe";
  EXPECT_EQ(*silent.encode("", {.add_bos = bos::always}), ids{bos_id});
  EXPECT_EQ(*silent.encode("", {.add_bos = bos::if_model_asks}), ids{});
  EXPECT_EQ(*asking.encode("", {.add_bos = bos::if_model_asks}), ids{bos_id});
  EXPECT_EQ(*asking.encode("", {.add_bos = bos::never}), ids{});

  v.bos = -1;
  const auto none = made(v).encode("", {.add_bos = bos::always});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().status, BITNET_INVALID_ARGUMENT);
}

TEST(special_tokens, what_ends_a_generation) {
  vocabulary_data v = bpe_vocabulary();
  add(v, "<|im_end|>", token_type::normal);
  add(v, "<|eom_id|>", token_type::control);
  add(v, "<|fim_pad|>", token_type::control);
  add(v, "<|file_sep|>", token_type::control);
  add(v, "<|other|>", token_type::control);
  const tokenizer t = made(std::move(v));
  for (const char* text : {"<|end_of_text|>", "<|eot_id|>", "<|im_end|>", "<|eom_id|>",
                           "<|fim_pad|>", "<|file_sep|>"}) {
    EXPECT_TRUE(t.ends_generation(*t.find(text))) << text;
  }
  for (const char* text : {"<|begin_of_text|>", "<|other|>", "<tool>", "a"}) {
    EXPECT_FALSE(t.ends_generation(*t.find(text))) << text;
  }
  EXPECT_FALSE(t.ends_generation(-1));
  EXPECT_EQ(t.eot(), t.find("<|eot_id|>"));
  EXPECT_EQ(decoded(t, {*t.find("<|im_end|>")}), "") << "an end of turn is no text";
}

TEST(special_tokens, tokens_of_a_gap_come_from_keys_and_then_from_texts) {
  EXPECT_FALSE(made(bpe_vocabulary()).infill().pre);
  vocabulary_data v = bpe_vocabulary();
  for (const char* text : {"<|fim_prefix|>", "<|fim_suffix|>", "<fim_middle>", "<reponame>"})
    add(v, text, token_type::control);
  add(v, "<|file_sep|>", token_type::normal);
  v.infill.suf = 'x';
  v.infill.pad = 'y';
  const tokenizer t = made(std::move(v));
  EXPECT_EQ(t.infill().pre, t.find("<|fim_prefix|>"));
  EXPECT_EQ(t.infill().suf, 'x') << "a key comes before a text";
  EXPECT_EQ(t.infill().mid, t.find("<fim_middle>"));
  EXPECT_EQ(t.infill().rep, t.find("<reponame>"));
  EXPECT_FALSE(t.infill().sep) << "no control token";
  EXPECT_TRUE(t.ends_generation('y'));
  EXPECT_FALSE(t.ends_generation('x'));
}

TEST(byte_level, a_word_that_is_a_token_needs_no_merges_with_ignore_merges) {
  for (const char* pre : {"llama-bpe", "gpt-2"}) {
    vocabulary_data v = bpe_vocabulary(pre);
    add(v, "zq", token_type::normal);  // no merge makes it
    const tokenizer t = made(std::move(v));
    const ids whole = {*t.find("zq")};
    const ids apart = {*t.find("z"), *t.find("q")};
    EXPECT_EQ(encoded(t, "zq"), pre == std::string("gpt-2") ? apart : whole) << pre;
    EXPECT_EQ(encoded(t, "zqz").size(), 3u) << "only whole words";
  }
}

TEST(byte_level, a_merge_may_pass_through_what_is_no_token) {
  vocabulary_data v = bpe_vocabulary("gpt-2", 1);
  add(v, "xyz", token_type::normal);
  v.merges = {"x y", "xy z"};  // "xy" is in no vocabulary
  const tokenizer t = made(std::move(v));
  EXPECT_EQ(encoded(t, "xyz"), ids{*t.find("xyz")});
  EXPECT_EQ(encoded(t, "xy"), (ids{*t.find("x"), *t.find("y")})) << "back to bytes";
}

TEST(byte_level, text_that_is_not_utf8_is_rejected_with_its_place) {
  const tokenizer t = made(bpe_vocabulary());
  const struct {
    std::string text;
    const char* byte;
    const char* offset;
    const char* why;
  } rows[] = {
      {"ab\xFF", "0xff", "offset 2", "a byte that UTF-8 never uses"},
      {"a\xC3", "0xc3", "offset 1", "cut off"},
      {"\xC0\x80", "0xc0", "offset 0", "overlong"},
      {"x\xED\xA0\x80", "0xed", "offset 1", "a surrogate"},
      {"\xF4\x90\x80\x80", "0xf4", "offset 0", "past U+10FFFF"},
      {"\xC3\xA9\x80", "0x80", "offset 2", "a continuation alone"},
  };
  for (const auto& r : rows) {
    const auto got = t.encode(r.text, {});
    ASSERT_FALSE(got) << r.why;
    EXPECT_EQ(got.error().status, BITNET_INVALID_ARGUMENT) << r.why;
    EXPECT_NE(got.error().message.find(r.byte), std::string::npos) << got.error().message;
    EXPECT_NE(got.error().message.find(r.offset), std::string::npos) << got.error().message;
  }
}

TEST(byte_level, a_byte_without_a_token_becomes_unknown_or_an_error) {
  vocabulary_data v = bpe_vocabulary();
  const auto q = std::ranges::find(v.tokens, "q");
  *q = "no-q";
  const auto got = made(v).encode("q", {});
  ASSERT_FALSE(got);
  EXPECT_NE(got.error().message.find("0x71"), std::string::npos) << got.error().message;
  v.unknown = 7;
  EXPECT_EQ(encoded(made(v), "q"), ids{7});
}

TEST(byte_level, notes_say_which_rule_was_guessed) {
  const struct {
    const char* pre;
    const char* architecture;
    const char* part;  // "" = no note
    const char* why;
  } rows[] = {
      {"llama-bpe", "llama", "", "named"},
      {"falcon3", "llama", "", "another name of the same"},
      {"default", "llama", "", "asked for"},
      {"", "bitnet-b1.58", "", "the official file: llama-bpe, known to be right"},
      {"", "llama", "has no tokenizer.ggml.pre", "missing"},
      {"klingon", "llama", "\"klingon\" is not known", "unknown"},
      {"falcon_e", "llama", "falcon_e", "undocumented"},
      {"falcon-e", "llama", "falcon-e", "the same, spelled as the model is"},
  };
  for (const auto& r : rows) {
    vocabulary_data v = bpe_vocabulary(r.pre);
    v.architecture = r.architecture;
    const std::string note(made(std::move(v)).note());
    EXPECT_EQ(note.empty(), std::string(r.part).empty()) << r.why << ": " << note;
    EXPECT_NE(note.find(r.part), std::string::npos) << r.why << ": " << note;
  }
}

TEST(byte_level, the_bitnet_rule_really_takes_llama_bpe) {
  vocabulary_data v = bpe_vocabulary("");
  add(v, "zq", token_type::normal);
  v.architecture = "bitnet-b1.58";
  const tokenizer t = made(std::move(v));
  EXPECT_EQ(encoded(t, "zq"), ids{*t.find("zq")});
  EXPECT_TRUE(t.adds_bos());
}

TEST(spm, a_space_goes_in_front_and_comes_off_again) {
  const tokenizer t = made(spm_vocabulary());
  EXPECT_EQ(encoded(t, ""), ids{});
  EXPECT_EQ(encoded(t, "the"), ids{*t.find("▁the")});
  EXPECT_EQ(*t.piece(*t.find("▁the"), false, true), "the");
  EXPECT_EQ(*t.piece(*t.find("▁the"), false, false), " the");
  EXPECT_EQ(decoded(t, encoded(t, " the")), " the");
  EXPECT_EQ(decoded(t, {*t.bos(), *t.find("▁the")}), "the") << "bos shows nothing";
}

TEST(spm, a_space_goes_in_front_after_each_special_token_too) {
  const tokenizer t = made(spm_vocabulary());
  const token eos = *t.eos();
  const token the = *t.find("▁the");
  EXPECT_EQ(encoded(t, "the</s>the", true), (ids{the, eos, the}));
  EXPECT_EQ(decoded(t, {the, eos, the}, true), "the</s>the");
  const std::string text = "the<sep>the <sep> the";
  EXPECT_EQ(decoded(t, encoded(t, text)), text);
  const ids plain = encoded(t, "</s>");
  EXPECT_EQ(std::ranges::count(plain, eos), 0) << "without parse_special it is four letters";
}

TEST(spm, bytes_that_are_no_character_become_byte_tokens) {
  const tokenizer t = made(spm_vocabulary());
  const std::string text = "a\xFF\xE2\x96";
  const ids got = encoded(t, text);
  EXPECT_EQ(got[got.size() - 1], *t.find("<0x96>"));
  EXPECT_EQ(got[got.size() - 3], *t.find("<0xFF>"));
  EXPECT_EQ(decoded(t, got), text);
}

TEST(spm, control_and_byte_tokens_are_never_merged_to) {
  vocabulary_data v = spm_vocabulary();
  for (const char* text : {"<", "s", ">", "<s", "0", "x", "<0", "<0x", "<0x4", "<0x41"}) {
    if (std::ranges::find(v.tokens, text) != v.tokens.end()) continue;
    add(v, text, token_type::normal);
    v.scores.push_back(1);
  }
  const tokenizer t = made(std::move(v));
  EXPECT_EQ(decoded(t, encoded(t, "<s>")), "<s>");
  EXPECT_EQ(std::ranges::count(encoded(t, "<s>"), *t.bos()), 0);
  EXPECT_EQ(decoded(t, encoded(t, "<0x41>")), "<0x41>");
}

TEST(spm, an_unused_token_is_a_step_and_then_taken_apart) {
  vocabulary_data v = spm_vocabulary();
  v.add_space_prefix = false;
  const auto scored = [&](const char* text, token_type type) {
    add(v, text, type);
    v.scores.push_back(100);
  };
  for (const char* text : {"J", "Q", "Z"}) scored(text, token_type::normal);
  scored("JQ", token_type::unused);
  scored("JQZ", token_type::normal);
  const tokenizer t = made(std::move(v));
  EXPECT_EQ(encoded(t, "JQ"), (ids{*t.find("J"), *t.find("Q")}));
  EXPECT_EQ(encoded(t, "JQZ"), ids{*t.find("JQZ")});
}

TEST(spm, without_byte_tokens_unknown_stands_for_a_byte) {
  vocabulary_data v = spm_vocabulary();
  for (size_t i = 3; i < 259; ++i) {
    v.tokens[i] = "gone" + std::to_string(i);
    v.types[i] = static_cast<int32_t>(token_type::unused);
  }
  EXPECT_EQ(encoded(made(v), "Ω").back(), 0);
  v.unknown = -1;
  const auto got = made(v).encode("Ω", {});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().status, BITNET_BAD_DATA);
}

TEST(ids, outside_the_vocabulary_are_an_error_that_names_them) {
  const tokenizer t = made(bpe_vocabulary());
  for (const token id : {-1, static_cast<token>(t.size()), 2147483647}) {
    const auto got = t.decode(ids{0, id}, false);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().status, BITNET_INVALID_ARGUMENT);
    EXPECT_NE(got.error().message.find(std::to_string(id)), std::string::npos);
    EXPECT_FALSE(t.piece(id, true, false));
  }
}

TEST(ids, values_of_the_file_are_reported) {
  vocabulary_data v = spm_vocabulary();
  v.padding = 2;
  v.chat_template = "{{ x }}";
  const tokenizer t = made(std::move(v));
  EXPECT_EQ(t.kind(), "llama");
  EXPECT_EQ(t.bos(), 1);
  EXPECT_EQ(t.eos(), 2);
  EXPECT_EQ(t.unknown(), 0);
  EXPECT_EQ(t.padding(), 2);
  EXPECT_EQ(t.chat_template(), "{{ x }}");
  EXPECT_FALSE(t.find("no such token"));
  EXPECT_EQ(made(bpe_vocabulary()).kind(), "gpt2");
}

}  // namespace
}  // namespace bitnet::tokenizer
