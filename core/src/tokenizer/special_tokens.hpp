#pragma once
// Finds special tokens that are written out in a text.
//
// Rule    Longest token first over the whole text, then the lower id, then leftmost. Control and
//         unknown tokens count only with parse_special, user-defined ones always. A control token
//         that overlaps a plain range does not count, nor does a user-defined one that marks turns:
//         files exist whose <|im_end|> is user-defined.
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
  std::string_view text;  // part of the text
};

class special_tokens {
 public:
  explicit special_tokens(const vocabulary& v);
  [[nodiscard]] std::vector<fragment> cut(std::string_view text, bool parse_special,
                                          std::span<const text_range> plain) const;

 private:
  static constexpr uint32_t none = patterns::none;

  // Links to the next shorter token that is a prefix of this one, and to a shorter one further
  // down, so that a search takes O(log n) of n such tokens.
  struct links {
    uint32_t shorter = none;
    uint32_t far = none;
    uint32_t rank = 0;  // number of shorter ones
  };
  struct entry {
    token id;
    uint32_t length;  // bytes
    bool is_safe;     // may overlap a plain range
    links all = {};
    links safe = {};               // among safe tokens
    uint32_t longest_safe = none;  // this token or a shorter one
  };

  // Index by prefixes. Patterns are stored reversed, and the text is read backwards.
  struct table {
    patterns backwards;
    std::vector<entry> entries;

    void link(uint32_t number, uint32_t shorter, links entry::* which);
    [[nodiscard]] uint32_t at_most(uint32_t longest, std::size_t length,
                                   links entry::* which) const;
    // The longest prefix token of `longest` that fits into `limit` bytes, of which only the first
    // `trusted` lie in no plain range; `none` if there is none.
    [[nodiscard]] uint32_t fitting(uint32_t longest, std::size_t limit, std::size_t trusted) const;
  };
  static table made(const vocabulary& v, bool with_parsed);

  table always_, parsed_;  // user-defined tokens; all special tokens
};

}  // namespace bitnet::tokenizer
