#pragma once
// Cuts a text at the special tokens written out in it.
//
// Rule    longest token first over the whole text, then the lower id, then leftmost.
//         Control and unknown tokens count only with parse_special, user-defined ones always. No
//         byte of a control token may lie in a plain range, nor of a user-defined one that marks
//         turns: files exist whose <|im_end|> is user-defined.
// Source  docs/reference/tokenizers.md#special-tokens
// Cost    memory O(text); time O(text x longest special token) at worst, O(text) in practice.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

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
  struct match {
    size_t at = 0;
    size_t length = 0;  // 0 = none
    token id = -1;
  };
  struct node {
    token always = -1;         // the user-defined token that ends here
    token parsed = -1;         // the control or unknown token that ends here
    bool marks_turns = false;  // `always` does
  };
  void add(std::string_view text, token id, bool always, bool marks_turns);
  // The longest token at text[at] of at most `limit` bytes; `trusted` of them lie in no plain
  // range.
  [[nodiscard]] match longest(std::string_view text, size_t at, size_t limit, size_t trusted,
                              bool parse) const;

  std::vector<node> nodes_;
  std::unordered_map<uint64_t, uint32_t> edges_;  // node << 8 | byte to node
  bool begins_[256] = {};                         // some token begins with this byte
  size_t longest_ = 0;
};

}  // namespace bitnet::tokenizer
