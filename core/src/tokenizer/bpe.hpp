#pragma once
// Byte-level BPE: one word of bytes to token ids by ranked merges.
//
// Rule     among all adjacent pairs the one with the lowest rank is merged first, ties leftmost,
//          until no pair has a rank. What is then no token of the vocabulary falls back to one
//          token per byte.
// Cost     O(n log n) for n bytes, no recursion.
// Errors   BITNET_BAD_DATA for a merge that is not "left right", or a byte that has no token.
// Source   docs/reference/tokenizers.md#byte-level-bpe

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "tokenizer/vocabulary.hpp"

namespace bitnet::tokenizer {

class bpe {
 public:
  static result<bpe> make(const vocabulary& v, std::span<const std::string> merges,
                          bool ignore_merges);
  // Appends the ids of `word`, raw bytes.
  [[nodiscard]] result<void> encode(std::string_view word, std::vector<token>& out) const;

 private:
  using symbol = uint32_t;  // index into symbols_
  struct merge {
    uint32_t rank;
    symbol product;
  };
  struct symbol_info {
    token id;         // -1: only a step on the way to a token
    uint32_t length;  // bytes
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
    symbol left_symbol;  // what the two were when the pair was seen: if they differ now, it is gone
    symbol right_symbol;
    bool operator>(const candidate& other) const {
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };
  static uint64_t pair(symbol left, symbol right) { return uint64_t{left} << 32 | right; }
  void merge_all(std::vector<link>& links) const;
  [[nodiscard]] result<void> emit_bytes(std::string_view bytes, std::vector<token>& out) const;

  std::array<symbol, 256> byte_symbols_{};
  std::vector<symbol_info> symbols_;
  std::unordered_map<uint64_t, merge> merges_;
  std::unordered_map<std::string, token> words_;  // by raw bytes; only with ignore_merges
  size_t longest_word_ = 0;
  token unknown_ = -1;
};

}  // namespace bitnet::tokenizer
