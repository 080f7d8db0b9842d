// Where each pre-tokenizer cuts. Expectations follow from its expressions; what all rules do with
// many more texts is compared with another implementation in tests/reference/tokenizers_test.py.
#include "tokenizer/pre_tokenizer.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include <random>
#include <string>
#include <vector>

#include "vocabularies.hpp"

namespace bitnet::tokenizer {
namespace {

using pieces = std::vector<std::string>;

struct row {
  const char* pre;
  const char* text;
  pieces expected;
  const char* why;
};

const row rows[] = {
    {"llama-bpe", "", {}, "nothing"},
    {"llama-bpe", "Hello world", {"Hello", " world"}, "the blank goes with the word"},
    {"llama-bpe", "12345", {"123", "45"}, "at most three digits"},
    {"llama-bpe", "I'LL", {"I", "'LL"}, "contractions in any case"},
    {"llama-bpe", "a   b", {"a", "  ", " b"}, "the last blank goes with the word"},
    {"llama-bpe", "a   ", {"a", "   "}, "blanks at the end stay together"},
    {"llama-bpe", "a \n\n b", {"a", " \n\n", " b"}, "blanks before line ends"},
    {"llama-bpe", "!?\n\nx", {"!?\n\n", "x"}, "line ends go with punctuation"},
    {"llama-bpe", "(x", {"(x"}, "one sign may stand before letters"},
    {"llama-bpe",
     "a\xC2\xA0"
     "b",
     {"a",
      "\xC2\xA0"
      "b"},
     "a no-break space is a sign before letters"},
    {"llama-bpe",
     "1\xC2\xA0"
     "2",
     {"1", "\xC2\xA0", "2"},
     "and white space elsewhere"},
    {"llama-bpe",
     "1\xE1\xA0\x8E"
     "2",
     {"1", "\xE1\xA0\x8E", "2"},
     "U+180E is one piece either way"},
    {"llama-bpe", "!\xE1\xA0\x8E", {"!\xE1\xA0\x8E"}, "U+180E is no white space: it joins signs"},
    {"llama-bpe", "é́x", {"é", "\xCC\x81x"}, "a combining mark is no letter"},
    {"qwen2", "123", {"1", "2", "3"}, "digits one by one"},
    {"gpt-2", "12345 I'll", {"12345", " I", "'ll"}, "digits together"},
    {"gpt-2", "I'LL", {"I", "'", "LL"}, "contractions in small letters only"},
    {"gpt-2", "a\nb", {"a", "\n", "b"}, "what is not matched is a piece"},
    {"gpt-2", "a  \n", {"a", "  \n"}, "white space at the end"},
    {"llama-bpe", "I'\u017fa", {"I", "'\u017f", "a"}, "the long s is an s"},
    {"laguna", "a\n\nb", {"a", "\n\n", "b"}, "line ends begin a piece, which the next step cuts"},
    {"tiny_aya", "1234567 12a", {"1", "234", "567", " ", "12", "a"}, "threes from the end"},
    {"superbpe", "1234567\u00b2345", {"1", "234", "567\u00b2", "345"}, "cuts before threes only"},
    {"afmoe", "12345\u00b2", {"123", "45\u00b2"}, "any numeral counts"},
    {"kimi-k2", "中文abc", {"中文", "abc"}, "Han apart from other letters"},
    {"exaone-moe", "to be or", {"to be or"}, "words joined by single spaces"},
    {"deepseek-coder", "ab12", {"ab", "1", "2"}, "digits one by one"},
    {"falcon", "12345", {"123", "45"}, "cut after the third digit"},
    {"falcon", "a, b`c", {"a", ",", " b", "`", "c"}, "punctuation alone, ` too"},
    {"default", "a 12345", {"a", " ", "123", "45"}, "digits lose their blank and are cut"},
    {"default", "a `b", {"a", " `", "b"}, "` is no punctuation here"},
    {"gemma4", "a b1\n\nc\r\n", {"a b1", "\n\n", "c\r", "\n"}, "line feeds alone are apart"},
    {"sarvam-moe", "\n a", {"\n", " a"}, "the same"},
    {"whitespace", " a,b \t\u3000c\n", {"a,b", "c"}, "white space goes away"},
    {"whitespace", " \n", {}, "all of it"},
};

TEST(split, cuts_where_the_expressions_say) {
  for (const row& r : rows) {
    const auto made = pre_tokenizer::make(pre_rule_for(r.pre, "").split);
    ASSERT_TRUE(made) << made.error().message;
    const auto got = made->split(r.text);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(pieces(got->begin(), got->end()), r.expected) << r.pre << ": " << r.why;
  }
}

class every_rule : public testing::TestWithParam<std::string_view> {};

pre_tokenizer made(std::string_view name, pre_tokenizer::engine how) {
  auto words = pre_tokenizer::make(pre_rule_for(name, "").split, how);
  if (!words) throw std::runtime_error(words.error().message);
  return *std::move(words);
}

std::string joined(const std::vector<std::string_view>& parts) {
  std::string out;
  for (const std::string_view part : parts) out += part;
  return out;
}

// What a rule leaves of a text: "whitespace" drops Unicode's white space.
std::string kept(std::string_view name, const std::string& text) {
  constexpr std::u32string_view blanks =
      U" \t\n\v\f\r\u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008"
      U"\u2009\u200a\u2028\u2029\u202f\u205f\u3000";
  if (name != "whitespace") return text;
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const utf8_char c = first_utf8_char(std::string_view(text).substr(i));
    if (!blanks.contains(c.code_point)) out += text.substr(i, c.length);
    i += c.length;
  }
  return out;
}

TEST_P(every_rule, loses_nothing_and_makes_no_empty_piece) {
  const pre_tokenizer words = made(GetParam(), pre_tokenizer::engine::compiled);
  const pre_tokenizer slower = made(GetParam(), pre_tokenizer::engine::interpreted);
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    const std::string text = testing_support::random_text(random, random() % 80);
    const auto got = words.split(text);
    ASSERT_TRUE(got) << got.error().message;
    ASSERT_EQ(joined(*got), kept(GetParam(), text));
    for (const std::string_view piece : *got) ASSERT_FALSE(piece.empty());
    ASSERT_EQ(*slower.split(text), *got) << "interpreted";
  }
}

std::string times(size_t n, std::string_view part) {
  std::string out;
  while (out.size() < n) out += part;
  return out;
}

// Of this thread, so that what else runs does not count.
double cpu_seconds() {
  timespec now{};
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

TEST_P(every_rule, takes_time_linear_in_any_run) {
  // A rule that walks over the rest of a run from each of its characters takes seconds here,
  // however often it is tried; the others take milliseconds, but where other programs have the
  // processor.
  const pre_tokenizer words = made(GetParam(), pre_tokenizer::engine::compiled);
  for (const std::string_view part :
       {" ",   "\n",          "\r\n",    "\t", "7", "a", "A",      "aA", "\u0301",
        "ไ",   "中",          "가",      "ʰ",  "!", "'", "'s",     " a", "a\u0301 ",
        " \n", "<sentinel:1", "IMGIMGA", "²",  "٣", "/", "\u3000", "😀"}) {
    const std::string run = times(1 << 16, part);
    for (const char* after : {"x", "²"}) {
      double least = 1e9;
      for (int tries = 0; tries < 5 && least >= 0.4; ++tries) {
        const double begin = cpu_seconds();
        const auto got = words.split(run + after);
        ASSERT_TRUE(got) << part << " ... " << after << ": " << got.error().message;
        least = std::min(least, cpu_seconds() - begin);
      }
      ASSERT_LT(least, 0.4) << part << " ... " << after;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(names, every_rule, testing::ValuesIn(pre_tokenizer_names()),
                         [](const auto& name_of) {
                           std::string name(name_of.param);
                           for (char& c : name)  // falcon_e and falcon-e are two
                             c = std::isalnum(c) != 0 ? c : c == '_' ? 'U' : '_';
                           return name;
                         });

TEST(names, say_how_words_and_begins_are_treated) {
  const struct {
    const char* name;
    whole_words whole;
    begin_rule bos;
    alphabet letters = alphabet::bytes;
  } flags[] = {
      {"llama-bpe", whole_words::all, begin_rule::by_default},
      {"jina-v5-nano", whole_words::all, begin_rule::by_default},
      {"tekken", whole_words::all, begin_rule::by_default},
      {"youtu", whole_words::all, begin_rule::if_asked},
      {"minicpm5", whole_words::all, begin_rule::if_asked},
      {"chameleon", whole_words::none, begin_rule::by_default},
      {"dbrx", whole_words::none, begin_rule::if_asked},
      {"glm4", whole_words::none, begin_rule::if_asked},
      {"gpt-4o", whole_words::none, begin_rule::if_asked},
      {"granite-embed-multi-97m", whole_words::all, begin_rule::if_asked},
      {"gemma4", whole_words::line_ends, begin_rule::always, alphabet::marked_characters},
      {"granite-embed-multi-311m", whole_words::line_ends, begin_rule::always,
       alphabet::marked_characters},
      {"sarvam-moe", whole_words::none, begin_rule::if_asked, alphabet::marked_characters},
      {"whitespace", whole_words::none, begin_rule::if_asked, alphabet::characters},
  };
  for (const auto& f : flags) {
    const pre_rule rule = pre_rule_for(f.name, "");
    EXPECT_EQ(rule.whole, f.whole) << f.name;
    EXPECT_EQ(rule.bos, f.bos) << f.name;
    EXPECT_EQ(rule.letters, f.letters) << f.name;
    EXPECT_EQ(rule.note, "") << f.name;
  }
}

TEST(split, says_where_an_expression_is_broken) {
  const auto made = pre_tokenizer::make({"a(b"});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().status, BITNET_INTERNAL);
  EXPECT_NE(made.error().message.find("at 3"), std::string::npos) << made.error().message;
}

TEST(split, stops_an_expression_that_works_too_long) {
  const auto made = pre_tokenizer::make({"(?:a+)+[bc]"});
  ASSERT_TRUE(made);
  const std::string text = "xy" + std::string(64, 'a');
  const auto got = made->split(text);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().status, BITNET_INVALID_ARGUMENT);
  EXPECT_NE(got.error().message.find("at byte 0"), std::string::npos) << got.error().message;
}

}  // namespace
}  // namespace bitnet::tokenizer
