// The merge algorithms against their definition, written out slowly: look at all pairs, merge the
// best, start over.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tokenizer/blanks.hpp"
#include "tokenizer/bpe.hpp"
#include "tokenizer/spm.hpp"
#include "vocabularies.hpp"

namespace bitnet::tokenizer {
namespace {

using namespace testing_support;  // NOLINT(google-build-using-namespace): test vocabularies

// As the vocabulary writes them.
std::vector<std::string> letters_of(const vocabulary& v, std::string_view word) {
  std::vector<std::string> out;
  for (size_t i = 0; i < word.size();) {
    const bool byte = v.letters == alphabet::bytes;
    const size_t length = byte ? 1 : first_utf8_char(word.substr(i)).length;
    out.emplace_back(byte ? byte_to_text(static_cast<unsigned char>(word[i]))
                          : word.substr(i, length));
    i += length;
  }
  return out;
}

std::vector<token> slow_bpe(const vocabulary& v, const std::vector<std::string>& merges,
                            std::string_view word) {
  std::vector<std::string> symbols = letters_of(v, word);
  while (true) {
    size_t best_rank = merges.size();
    size_t best_at = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = std::ranges::find(merges, symbols[i] + " " + symbols[i + 1]);
      const auto rank = static_cast<size_t>(found - merges.begin());
      if (rank < best_rank) {
        best_rank = rank;
        best_at = i;
      }
    }
    if (best_rank == merges.size()) break;
    symbols[best_at] += symbols[best_at + 1];
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(best_at) + 1);
  }
  std::vector<token> out;
  for (const std::string& s : symbols) {
    if (const auto id = v.find(s)) {
      out.push_back(*id);
      continue;
    }
    const bool byte = v.letters == alphabet::bytes;
    for (const char c : byte ? *text_to_bytes(s) : s) {
      const auto b = static_cast<unsigned char>(c);
      out.push_back(byte ? *v.find(byte_to_text(b)) : v.byte_tokens[b]);
    }
  }
  return out;
}

std::vector<token> slow_spm(const vocabulary& v, std::string_view text) {
  std::vector<std::string> symbols;
  for (size_t i = 0; i < text.size();) {
    const utf8_char c = first_utf8_char(text.substr(i));
    symbols.emplace_back(text[i] == ' ' ? spm_blank : text.substr(i, c.length));
    i += c.length;
  }
  while (true) {
    std::optional<float> best_score;
    size_t best_at = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto id = v.find(symbols[i] + symbols[i + 1]);
      if (!id || v.type(*id) != token_type::normal) continue;
      const float score = v.scores[static_cast<size_t>(*id)];
      if (!best_score || score > *best_score) {
        best_score = score;
        best_at = i;
      }
    }
    if (!best_score) break;
    symbols[best_at] += symbols[best_at + 1];
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(best_at) + 1);
  }
  std::vector<token> out;
  for (const std::string& s : symbols) {
    if (const auto id = v.find(s)) {
      out.push_back(*id);
      continue;
    }
    for (const char c : s) out.push_back(v.byte_tokens[static_cast<unsigned char>(c)]);
  }
  return out;
}

// Words over few letters, so that merges overlap and ranks tie often.
std::string dense_word(std::mt19937& random) {
  std::string out;
  for (size_t n = random() % 40; n > 0; --n) out += "aabbcd "[random() % 7];
  return out;
}

TEST(byte_level_merges, equal_their_definition_on_trained_merges) {
  vocabulary_data data = bpe_vocabulary();
  const auto merges = data.merges;
  const auto v = check_vocabulary(data, {});
  ASSERT_TRUE(v) << v.error().message;
  const auto fast = bpe::make(*v, merges, whole_words::none);
  ASSERT_TRUE(fast) << fast.error().message;
  std::mt19937 random(2);
  for (int i = 0; i < 400; ++i) {
    const std::string word = random_text(random, random() % 40);
    std::vector<token> got;
    ASSERT_TRUE(fast->encode(word, got));
    ASSERT_EQ(got, slow_bpe(*v, merges, word)) << word;
  }
}

TEST(byte_level_merges, equal_their_definition_on_random_merges) {
  // Training makes well-behaved merges; these jump ahead of their own parts, repeat and lead to
  // symbols that are no tokens.
  std::mt19937 random(3);
  for (int table = 0; table < 60; ++table) {
    vocabulary_data data = bpe_vocabulary("gpt-2", 1);
    std::vector<std::string> symbols = {"a", "b", "c", "d", std::string(byte_to_text(' '))};
    std::vector<std::string> merges;
    for (int i = 0; i < 25; ++i) {
      const std::string left = symbols[random() % symbols.size()];
      const std::string right = symbols[random() % symbols.size()];
      if ((left + right).size() > 12) continue;
      merges.push_back(left + " " + right);
      symbols.push_back(left + right);
      const bool is_token = std::ranges::find(data.tokens, left + right) != data.tokens.end();
      if (random() % 4 != 0 && !is_token) add(data, left + right, token_type::normal);
    }
    std::ranges::shuffle(merges, random);
    const auto v = check_vocabulary(data, {});
    ASSERT_TRUE(v) << v.error().message;
    const auto fast = bpe::make(*v, merges, whole_words::none);
    ASSERT_TRUE(fast) << fast.error().message;
    for (int i = 0; i < 30; ++i) {
      const std::string word = dense_word(random);
      std::vector<token> got;
      ASSERT_TRUE(fast->encode(word, got));
      ASSERT_EQ(got, slow_bpe(*v, merges, word)) << word;
    }
  }
}

TEST(character_merges, equal_their_definition_on_trained_merges) {
  vocabulary_data data = character_vocabulary("gpt2", "sarvam-moe");
  const auto merges = data.merges;
  const auto v = check_vocabulary(data, pre_rule_for("sarvam-moe", ""));
  ASSERT_TRUE(v) << v.error().message;
  const auto fast = bpe::make(*v, merges, whole_words::none);
  ASSERT_TRUE(fast) << fast.error().message;
  std::mt19937 random(6);
  for (int i = 0; i < 400; ++i) {
    const std::string word = with_marked_blanks(random_text(random, random() % 40), false);
    std::vector<token> got;
    ASSERT_TRUE(fast->encode(word, got));
    ASSERT_EQ(got, slow_bpe(*v, merges, word)) << word;
  }
}

TEST(character_merges, equal_their_definition_on_random_merges) {
  // Letters of one to four bytes; some are in merges and no tokens.
  const std::vector<std::string> letters = {"a", "\u00e9", "\u4e2d", "\U0001F600", "z"};
  std::mt19937 random(7);
  for (int table = 0; table < 60; ++table) {
    vocabulary_data data = character_vocabulary("gpt2", "whitespace", "");
    std::vector<std::string> symbols = letters;
    std::vector<std::string> merges;
    for (int i = 0; i < 25; ++i) {
      const std::string left = symbols[random() % symbols.size()];
      const std::string right = symbols[random() % symbols.size()];
      if ((left + right).size() > 24) continue;
      merges.push_back(left + " " + right);
      symbols.push_back(left + right);
      const bool is_token = std::ranges::find(data.tokens, left + right) != data.tokens.end();
      if (random() % 4 != 0 && !is_token) add(data, left + right, token_type::normal);
    }
    std::ranges::shuffle(merges, random);
    const auto v = check_vocabulary(data, pre_rule_for("whitespace", ""));
    ASSERT_TRUE(v) << v.error().message;
    const auto fast = bpe::make(*v, merges, whole_words::none);
    ASSERT_TRUE(fast) << fast.error().message;
    for (int i = 0; i < 30; ++i) {
      std::string word;
      for (size_t n = random() % 30; n > 0; --n) word += letters[random() % letters.size()];
      std::vector<token> got;
      ASSERT_TRUE(fast->encode(word, got));
      ASSERT_EQ(got, slow_bpe(*v, merges, word)) << word;
    }
  }
}

TEST(spm_merges, equal_their_definition) {
  vocabulary_data data = spm_vocabulary();
  const auto v = check_vocabulary(data, {});
  ASSERT_TRUE(v) << v.error().message;
  std::mt19937 random(4);
  for (int i = 0; i < 400; ++i) {
    const std::string text = random_text(random, random() % 40);
    std::vector<token> got;
    ASSERT_TRUE(encode_spm(*v, text, false, got));
    ASSERT_EQ(got, slow_spm(*v, text)) << text;
  }
}

TEST(spm_merges, equal_their_definition_on_random_scores) {
  std::mt19937 random(5);
  for (int table = 0; table < 60; ++table) {
    vocabulary_data data = spm_vocabulary(0);
    for (int i = 0; i < 60; ++i) {
      std::string text;
      for (size_t n = 2 + random() % 4; n > 0; --n) text += "abcd"[random() % 4];
      if (std::ranges::find(data.tokens, text) != data.tokens.end()) continue;
      add(data, text, token_type::normal);
      data.scores.push_back(static_cast<float>(random() % 8));  // few values: many ties
    }
    const auto v = check_vocabulary(data, {});
    ASSERT_TRUE(v) << v.error().message;
    for (int i = 0; i < 30; ++i) {
      const std::string word = dense_word(random);
      std::vector<token> got;
      ASSERT_TRUE(encode_spm(*v, word, false, got));
      ASSERT_EQ(got, slow_spm(*v, word)) << word;
    }
  }
}

}  // namespace
}  // namespace bitnet::tokenizer
