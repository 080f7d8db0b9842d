#pragma once
// Splits a text into the words that BPE never merges across, by regular expressions.
//
// Rule     the expressions of a pre-tokenizer apply one after the other; each splits the pieces
//          that the one before left, and what it does not match between two matches is a piece of
//          its own.
// Needs    valid UTF-8.
// Errors   BITNET_INVALID_ARGUMENT when the work limit of the expression engine is reached.
// Threads  immutable after make.
// Source   docs/reference/tokenizers.md#splitting-rules

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace bitnet::tokenizer {

// What a name in tokenizer.ggml.pre means.
struct pre_rule {
  std::vector<std::string_view> expressions;
  bool ignore_merges = false;  // a word that is a token needs no merging
  bool add_bos = false;        // unless the file says otherwise
  std::string note;            // "" or why this rule was taken
};

[[nodiscard]] pre_rule pre_rule_for(std::string_view pre, std::string_view architecture);

class pre_tokenizer {
 public:
  static result<pre_tokenizer> make(const std::vector<std::string_view>& expressions);
  pre_tokenizer(pre_tokenizer&&) noexcept;
  pre_tokenizer& operator=(pre_tokenizer&&) noexcept;
  ~pre_tokenizer();

  [[nodiscard]] result<std::vector<std::string_view>> split(std::string_view text) const;

 private:
  struct code_deleter {
    void operator()(void* code) const noexcept;
  };
  pre_tokenizer();
  std::vector<std::unique_ptr<void, code_deleter>> codes_;  // pcre2_code, compiled
};

}  // namespace bitnet::tokenizer
