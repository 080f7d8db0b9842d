#pragma once
// Small vocabularies made from a few sentences, one of each kind, and random text.

#include <algorithm>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/byte_table.hpp"
#include "tokenizer/tokenizer.hpp"
#include "tokenizer/utf8.hpp"

namespace bitnet::tokenizer::testing_support {

inline constexpr std::string_view sentences =
    "Once upon a time a small fox lived near the river. The fox was kind and the river was cold. "
    "One day the fox found a red stone under the old tree. The stone was warm, and the fox took "
    "the stone home. Then the rain came, and the river grew, and the tree sang a song to the fox.";

inline constexpr std::string_view spm_blank = "\xE2\x96\x81";

using word = std::vector<std::string>;  // symbols

// The words of `sentences`, each but the first with `blank` in front, cut into letters.
inline std::vector<word> training_words(std::string_view blank) {
  std::vector<word> words(1);
  for (const char c : sentences) {
    if (c == ' ') words.emplace_back().emplace_back(blank);
    if (c != ' ') words.back().emplace_back(1, c);
  }
  return words;
}

// The `count` pairs that byte-pair training finds, in order; ties by text.
inline std::vector<std::pair<std::string, std::string>> train(std::vector<word> words,
                                                              size_t count) {
  std::vector<std::pair<std::string, std::string>> merges;
  while (merges.size() < count) {
    std::map<std::pair<std::string, std::string>, int> seen;
    for (const word& w : words) {
      for (size_t i = 0; i + 1 < w.size(); ++i) ++seen[{w[i], w[i + 1]}];
    }
    const auto best = std::ranges::max_element(
        seen, [](const auto& a, const auto& b) { return a.second < b.second; });
    if (best == seen.end()) break;
    merges.push_back(best->first);
    for (word& w : words) {
      for (size_t i = 0; i + 1 < w.size(); ++i) {
        if (std::pair(w[i], w[i + 1]) != merges.back()) continue;
        w[i] += w[i + 1];
        w.erase(w.begin() + static_cast<ptrdiff_t>(i) + 1);
      }
    }
  }
  return merges;
}

inline void add(vocabulary_data& v, std::string text, token_type type) {
  v.tokens.push_back(std::move(text));
  v.types.push_back(static_cast<int32_t>(type));
}

inline vocabulary_data bpe_vocabulary(std::string pre = "llama-bpe", size_t n_merges = 80) {
  vocabulary_data v;
  v.model = "gpt2";
  v.pre = std::move(pre);
  for (int b = 0; b < 256; ++b) {
    add(v, std::string(byte_to_text(static_cast<unsigned char>(b))), token_type::normal);
  }
  for (const auto& [left, right] : train(training_words(byte_to_text(' ')), n_merges)) {
    if (std::ranges::find(v.tokens, left + right) == v.tokens.end()) {
      add(v, left + right, token_type::normal);
    }
    v.merges.push_back(left + " " + right);
  }
  v.bos = static_cast<int64_t>(v.tokens.size());
  add(v, "<|begin_of_text|>", token_type::control);
  v.eos = static_cast<int64_t>(v.tokens.size());
  add(v, "<|end_of_text|>", token_type::control);
  add(v, "<|eot_id|>", token_type::control);
  add(v, "<tool>", token_type::user_defined);
  add(v, "<tool>fox", token_type::user_defined);
  return v;
}

inline void add_byte_tokens(vocabulary_data& v) {
  for (int b = 0; b < 256; ++b) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    add(v, std::string("<0x") + digits[b / 16] + digits[b % 16] + ">", token_type::byte);
  }
}

// Of BPE over characters; `mark` is how it writes a blank, "" if blanks go away.
inline vocabulary_data character_vocabulary(std::string model, std::string pre,
                                            std::string_view mark = spm_blank) {
  vocabulary_data v;
  v.model = std::move(model);
  v.pre = std::move(pre);
  add(v, "<pad>", token_type::control);
  add(v, "<eos>", token_type::control);
  add(v, "<bos>", token_type::control);
  add(v, "<unk>", token_type::unknown);
  v.eos = 1;
  v.bos = 2;
  v.unknown = 3;
  add_byte_tokens(v);
  add(v, "\n\n\n", token_type::normal);  // no merge makes it
  std::vector<word> words = training_words(mark);
  if (mark.empty()) {
    for (word& w : words) std::erase(w, "");
  }
  for (const word& w : words) {
    for (const std::string& letter : w) {
      if (std::ranges::find(v.tokens, letter) == v.tokens.end()) {
        add(v, letter, token_type::normal);
      }
    }
  }
  for (const auto& [left, right] : train(std::move(words), 80)) {
    if (std::ranges::find(v.tokens, left + right) == v.tokens.end()) {
      add(v, left + right, token_type::normal);
    }
    v.merges.push_back(left + " " + right);
  }
  add(v, "<tool>", token_type::user_defined);
  return v;
}

inline vocabulary_data spm_vocabulary(size_t n_merges = 60) {
  vocabulary_data v;
  v.model = "llama";
  const auto scored = [&](std::string text, token_type type, float score) {
    add(v, std::move(text), type);
    v.scores.push_back(score);
  };
  scored("<unk>", token_type::unknown, 0);
  scored("<s>", token_type::control, 0);
  scored("</s>", token_type::control, 0);
  for (int b = 0; b < 256; ++b) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    scored(std::string("<0x") + digits[b / 16] + digits[b % 16] + ">", token_type::byte, 0);
  }
  float score = -1;
  for (const auto& [left, right] : train(training_words(spm_blank), n_merges)) {
    if (std::ranges::find(v.tokens, left + right) == v.tokens.end()) {
      scored(left + right, token_type::normal, score);
    }
    score -= 1;
  }
  for (const word& w : training_words(spm_blank)) {
    for (const std::string& letter : w) {
      if (std::ranges::find(v.tokens, letter) != v.tokens.end()) continue;
      scored(letter, token_type::normal, score);
      score -= 1;
    }
  }
  scored("<sep>", token_type::user_defined, 0);
  return v;
}

// Valid UTF-8 of `length` characters: mostly letters and blanks of the training text, some of every
// other length and kind.
inline std::string random_text(std::mt19937& random, size_t length) {
  const auto below = [&](uint32_t n) { return random() % n; };
  std::string out;
  for (size_t i = 0; i < length; ++i) {
    const uint32_t kind = below(10);
    char32_t c = static_cast<unsigned char>(sentences[below(sentences.size())]);
    if (kind == 6) c = U"  \n\r\t'0123456789.,!?<|>"[below(22)];
    if (kind == 7) c = 0x80 + below(0x700);
    if (kind == 8) c = 0x800 + below(0xD000 - 0x800);
    if (kind == 9) c = 0x10000 + below(0x100000);
    if (c == 0x2581) c = ' ';  // SPM's own way to write a blank: it would not come back
    append_utf8(out, c);
  }
  return out;
}

using ids = std::vector<token>;

inline tokenizer made(vocabulary_data data) {
  auto t = tokenizer::make(std::move(data));
  if (!t) throw std::runtime_error(t.error().message);
  return *std::move(t);
}

inline ids encoded(const tokenizer& t, std::string_view text, bool parse_special = false) {
  const auto got = t.encode(text, {.parse_special = parse_special});
  if (!got) throw std::runtime_error(got.error().message);
  return *got;
}

inline std::string decoded(const tokenizer& t, const ids& of, bool special = false) {
  const auto got = t.decode(of, special);
  if (!got) throw std::runtime_error(got.error().message);
  return *got;
}

}  // namespace bitnet::tokenizer::testing_support
