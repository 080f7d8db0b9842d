#pragma once
// Cuts a text at the special tokens written out in it.
//
// Rule    longest token first over the whole text, then the lower id, then leftmost.
//         Control and unknown tokens count only with parse_special, user-defined ones always. No
//         byte of a control token may lie in a plain range, nor of a user-defined one that marks
//         turns: files exist whose <|im_end|> is user-defined.
// Source  docs/reference/tokenizers.md#special-tokens
// Cost    memory O(text); time O(n log n) for n bytes, whatever the tokens are, O(n) in practice.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/patterns.hpp"
#include "tokenizer/vocabulary.hpp"

namespace bitnet::tokenizer {

struct fragment {
  token id;               // -1: plain text
  std::string_view text;  // into the text that was cut
};

class special_tokens {
 public:
  explicit special_tokens(const vocabulary& v);
  [[nodiscard]] std::vector<fragment> cut(std::string_view text, bool parse_special,
                                          std::span<const text_range> plain) const;

 private:
  static constexpr uint32_t none = patterns::none;

  // To the next shorter token that begins this one, and to one further down, for searches in
  // O(log of how many there are).
  struct links {
    uint32_t shorter = none;
    uint32_t far = none;
    uint32_t rank = 0;  // how many are shorter
  };
  struct entry {
    token id;
    uint32_t length;  // bytes
    bool is_safe;     // may lie in a plain range
    links all = {};
    links safe = {};               // among those that are
    uint32_t longest_safe = none;  // itself or a shorter one
  };

  // Tokens by their beginnings: the patterns are written backwards, and so is a text read.
  struct table {
    patterns backwards;
    std::vector<entry> entries;

    void link(uint32_t number, uint32_t shorter, links entry::* which);
    [[nodiscard]] uint32_t at_most(uint32_t longest, std::size_t length,
                                   links entry::* which) const;
    // The longest token that begins as `longest` does, of at most `limit` bytes, of which `trusted`
    // lie in no plain range; `none`.
    [[nodiscard]] uint32_t fitting(uint32_t longest, std::size_t limit, std::size_t trusted) const;
  };
  static table made(const vocabulary& v, bool with_parsed);

  table always_, parsed_;  // user-defined ones; those and the control and unknown ones
};

}  // namespace bitnet::tokenizer
