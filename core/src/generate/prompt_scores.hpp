#pragma once
// The tokens of a prompt one after the other, with the log probability that the model gave each:
// that of token i comes of the row behind token i - 1.
//
// Threads one at a time.

#include <cstdint>
#include <span>
#include <string>

#include "base/result.hpp"
#include "generate/logprobs.hpp"
#include "generate/row.hpp"
#include "tokenizer/tokenizer.hpp"

namespace bitnet::generate {

struct scored {
  int32_t token = -1;
  std::string text;         // whole characters; the rest comes with a later token
  token_logprobs logprobs;  // of the first token: 0, and no others
};

class prompt_scores {
 public:
  // `n_top`: of the most probable beside each, <= most_logprobs.
  explicit prompt_scores(uint32_t n_top) : n_top_(n_top) {}

  // The token that comes next, of all of `prompt`.
  [[nodiscard]] uint64_t next() const { return next_; }
  // The first token whose row is still needed.
  [[nodiscard]] uint64_t first_row() const { return next_ == 0 ? 0 : next_ - 1; }
  // The next token; `before` is the row of the one before it, with all logits, and nullptr for the
  // first. BITNET_INTERNAL where a logit is NaN or infinite, or none is finite.
  result<scored> take(const tokenizer::tokenizer& tokens, std::span<const int32_t> prompt,
                      const row* before);

 private:
  uint32_t n_top_;
  uint64_t next_ = 0;
  tokenizer::utf8_stream characters_;
};

}  // namespace bitnet::generate
