// What a tokenizer does with a text takes time linear in its length, whatever the text and the
// vocabulary are. pre_tokenizer_test.cpp has the splitting rules.
#include "../growth.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tokenizer/special_tokens.hpp"
#include "tokenizer/tokenizer.hpp"
#include "tokenizer/unicode_forms.hpp"
#include "vocabularies.hpp"

namespace bitnet::tokenizer {
namespace {

using namespace testing_support;  // NOLINT(google-build-using-namespace): vocabularies
using bitnet::testing_support::expect_linear;
using bitnet::testing_support::times;

struct row {
  const char* why;
  std::function<vocabulary_data()> vocabulary;
  std::function<std::string(std::size_t n)> text;  // of n parts
  bool parse_special = false;
};

vocabulary_data composing() {
  vocabulary_data v = bpe_vocabulary();
  v.compose = true;
  return v;
}

vocabulary_data without_accents() {
  vocabulary_data v;
  v.model = "bert";
  for (const char* text : {"[PAD]", "[UNK]", "[CLS]", "[SEP]"}) add(v, text, token_type::control);
  for (const char* text : {"▁a", "a", "aa", "aaaa", "▁!"}) add(v, text, token_type::normal);
  v.unknown = 1;
  return v;
}

// "<", "<<" ... and, behind long runs of them, tokens that take the end of each run away.
vocabulary_data nested(vocabulary_data v) {
  for (std::size_t n = 2; n <= 512; ++n) {
    add(v, std::string(n, '<'), token_type::user_defined);
    if (!v.scores.empty()) v.scores.push_back(0);
  }
  for (std::size_t n = 513; n <= 2048; n *= 2) {
    add(v, std::string(n, '<') + '>', token_type::user_defined);
    if (!v.scores.empty()) v.scores.push_back(0);
  }
  return v;
}

vocabulary_data spm_of_one_letter() {
  vocabulary_data v = spm_vocabulary();
  for (std::size_t n = 2; n <= 256; ++n) {
    add(v, std::string(n, 'z'), token_type::normal);
    v.scores.push_back(static_cast<float>(n));
  }
  return v;
}

std::string marks(std::size_t n) {
  return "a" + times(n, "\u0301\u0323");
}

const row rows[] = {
    {"marks in the wrong order, composed", composing, marks},
    {"marks in the wrong order, taken off", without_accents, marks},
    {"marks in the right order", composing, [](auto n) { return "a" + times(n, "\u0323\u0323"); }},
    {"one word, pairs of bytes", [] { return bpe_vocabulary(); },
     [](auto n) { return times(n, "the"); }},
    {"one word of one letter", [] { return bpe_vocabulary(); },
     [](auto n) { return times(n, "a"); }},
    {"characters without a token", [] { return character_vocabulary("gemma4", ""); },
     [](auto n) { return times(n, "é"); }},
    {"one line, pairs of characters", [] { return character_vocabulary("gemma4", ""); },
     [](auto n) { return times(n, "the "); }},
    {"SPM without blanks", [] { return spm_vocabulary(); }, [](auto n) { return times(n, "fox"); }},
    {"SPM, bytes", [] { return spm_vocabulary(); }, [](auto n) { return times(n, "\u4e2d"); }},
    {"SPM, tokens that grow letter by letter", spm_of_one_letter,
     [](auto n) { return times(n, "z"); }},
    {"a word that is too long for WordPiece", without_accents,
     [](auto n) { return times(n, "a"); }},
    {"many words of WordPiece", without_accents, [](auto n) { return times(n, "aaaaaaa "); }},
    {"WordPiece, each mark a word", without_accents, [](auto n) { return times(n, "!"); }},
    {"nested special tokens, bytes", [] { return nested(bpe_vocabulary()); },
     [](auto n) { return times(n, "<"); }},
    {"nested special tokens that others cut", [] { return nested(spm_vocabulary()); },
     [](auto n) { return times(1 + n / 1030, std::string(1029, '<') + '>'); }},
    {"beginnings of special tokens", [] { return bpe_vocabulary(); },
     [](auto n) { return times(n, "<|begin_of_tex"); }, true},
    {"special tokens", [] { return bpe_vocabulary(); },
     [](auto n) { return times(n, "<|eot_id|>"); }, true},
};

TEST(growth, of_encoding_is_linear) {
  for (const row& r : rows) {
    const tokenizer t = made(r.vocabulary());
    expect_linear(r.why, 2000,
                  [&](std::size_t n) { (void)encoded(t, r.text(n), r.parse_special); });
  }
}

TEST(growth, of_decoding_is_linear) {
  for (const auto& v : {bpe_vocabulary(), spm_vocabulary(), without_accents()}) {
    const tokenizer t = made(v);
    const ids some = encoded(t, "a");
    expect_linear(v.model, 2000, [&](std::size_t n) {
      ids all;
      for (std::size_t i = 0; i < n; ++i) all.insert(all.end(), some.begin(), some.end());
      (void)decoded(t, all);
    });
  }
}

}  // namespace
}  // namespace bitnet::tokenizer
