#pragma once
// Scores the tokens of a prompt one after the other, with the log probability that the model gave
// each: that of token i comes from the row behind token i - 1.
//
// Threads one at a time.

#include <cstdint>
#include <span>
#include <string>

#include "base/result.hpp"
#include "generate/logits_row.hpp"
#include "generate/logprobs.hpp"
#include "tokenizer/tokenizer.hpp"

namespace bitnet::generate {

struct scored {
  int32_t token = -1;
  std::string text;         // whole characters; an incomplete one comes with a later token
  token_logprobs logprobs;  // of the first token: 0, and no others
};

class prompt_scores {
 public:
  // `n_top`: how many of the most probable tokens are listed beside each, <= most_logprobs.
  explicit prompt_scores(uint32_t n_top) : n_top_(n_top) {}

  // The index in the prompt of the token that take() scores next.
  [[nodiscard]] uint64_t next() const { return next_; }
  // The first token whose row is still needed.
  [[nodiscard]] uint64_t first_row() const { return next_ == 0 ? 0 : next_ - 1; }
  // Scores the next token. `before` is the row of the token before it, with all logits, and nullptr
  // for the first. BITNET_INTERNAL if a logit is NaN or infinite, or none is finite.
  result<scored> take(const tokenizer::tokenizer& tokens, std::span<const int32_t> prompt,
                      const logits_row* before);

 private:
  uint32_t n_top_;
  uint64_t next_ = 0;
  tokenizer::utf8_stream characters_;
};

}  // namespace bitnet::generate
