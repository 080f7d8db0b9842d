#pragma once
// BPE: converts a word to token ids by ranked merges.
//
// Rule     A word is first split into letters: bytes or characters. Among all adjacent pairs the
//          one with the lowest rank is merged first, ties leftmost, until no pair has a rank. A
//          result that is no token is split into one token per byte; a letter that lacks one of
//          these becomes one unknown token.
// Cost     O(n log n) for n bytes, no recursion.
// Errors   BITNET_BAD_DATA for a merge that is not "left right", or a letter that has no token.
// Source   docs/reference/tokenizers.md#byte-level-bpe, #bpe-over-characters

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "tokenizer/pre_tokenizer.hpp"
#include "tokenizer/vocabulary.hpp"

namespace bitnet::tokenizer {

class bpe {
 public:
  static result<bpe> make(const vocabulary& v, std::span<const std::string> merges,
                          whole_words whole);
  // Appends the ids of `word`: raw bytes, or valid UTF-8 if letters are characters.
  [[nodiscard]] result<void> encode(std::string_view word, std::vector<token>& out) const;

 private:
  using symbol = uint32_t;  // index into symbols_
  struct merge {
    uint32_t rank;
    symbol product;
  };
  struct link {  // a symbol of the word being merged, in a doubly linked list
    symbol what;
    int32_t previous;
    int32_t next;
    uint32_t begin;  // byte offset in the word
  };
  struct candidate {
    uint32_t rank;
    int32_t left;
    symbol left_symbol;  // the two symbols when the pair was found; if they differ now, it is stale
    symbol right_symbol;
    bool operator>(const candidate& other) const {
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };
  static uint64_t pair(symbol left, symbol right) { return uint64_t{left} << 32 | right; }
  struct symbol_names;  // while the tables are made
  result<void> add_merges(symbol_names& names, std::span<const std::string> merges);
  void add_words(const vocabulary& v, whole_words whole);
  [[nodiscard]] symbol letter(std::string_view text) const;
  [[nodiscard]] size_t letter_length(std::string_view rest) const;  // bytes
  void merge_all(std::vector<link>& links) const;
  [[nodiscard]] result<void> emit_bytes(std::string_view bytes, std::vector<token>& out) const;

  alphabet letters_ = alphabet::bytes;
  std::array<symbol, 256> byte_symbols_{};             // letters that are bytes
  std::unordered_map<char32_t, symbol> char_symbols_;  // letters that are characters
  std::vector<token> symbols_;                         // -1: only an intermediate step
  std::array<token, 256> byte_tokens_{};               // -1 = none
  std::unordered_map<uint64_t, merge> merges_;
  std::unordered_map<std::string, token> words_;  // by raw text; words that need no merges
  size_t longest_word_ = 0;
  token unknown_ = -1;
};

}  // namespace bitnet::tokenizer
