#pragma once
// Cuts a text at the special tokens written out in it.
//
// Rule    longest token first over the whole text, then the lower id, then leftmost.
//         Control and unknown tokens count only with parse_special, user-defined ones always.
// Source  docs/reference/tokenizers.md#special-tokens
// Cost    memory O(text); time O(n log n) for n bytes, whatever the tokens are, O(n) in practice.

#include <cstddef>
#include <cstdint>
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
  [[nodiscard]] std::vector<fragment> cut(std::string_view text, bool parse_special) const;

 private:
  // A token, and the shorter ones that begin it.
  struct entry {
    token id;
    uint32_t length;   // bytes
    uint32_t shorter;  // entry of the next shorter one; `none`
    uint32_t far;      // one further down, for searches in O(log of how many there are)
    uint32_t rank;     // how many are shorter
  };
  static constexpr uint32_t none = patterns::none;

  // Tokens by their beginnings: the patterns are written backwards, and so is a text read.
  struct table {
    patterns backwards;
    std::vector<entry> entries;
    [[nodiscard]] uint32_t at_most(uint32_t longest, std::size_t length) const;
  };
  static table made(const vocabulary& v, bool with_parsed);

  table always_, parsed_;  // user-defined ones; those and the control and unknown ones
};

}  // namespace bitnet::tokenizer
