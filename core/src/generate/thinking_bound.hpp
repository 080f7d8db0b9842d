#pragma once
// Bounds the thinking of an answer: says which token must come next once its tokens are used up.
//
// Thinking  begins with the answer where the prompt has opened it, else where the answer's first
//           word is the tag that opens it. It ends at the tag that ends it, and comes once.
// Tokens    those behind the one that opens it are counted. When there are as many as may come, the
//           tokens of the ending tag are forced: of what is missing of it, where the text already
//           ends in its beginning.
// Grammar   A forced token that a grammar does not allow does not come; it is tried again behind
//           the next one.
// Threads   one at a time.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "tokenizer/tokenizer.hpp"

namespace bitnet::generate {

struct thinking_options {
  int64_t most_tokens = -1;  // -1: no bound
  bool is_open = false;      // by the prompt
  std::string begins;        // "<think>"; "": only a prompt opens it
  std::string ends;          // "</think>"; "": no bound

  [[nodiscard]] bool is_bound() const { return most_tokens >= 0 && !ends.empty(); }
};
inline constexpr std::size_t most_thinking_tag = 64;  // bytes

class thinking_bound {
 public:
  // `tokens` is borrowed. `by_text`: control tokens may not come, as a grammar has it.
  // BITNET_INVALID_ARGUMENT for tags that are too long; BITNET_UNSUPPORTED where the vocabulary
  // cannot write the tag that ends it.
  static result<thinking_bound> make(const tokenizer::tokenizer& tokens, thinking_options o,
                                     bool by_text);

  // The token that must come next. `allowed`: bits by id, of a grammar; empty: all.
  std::optional<int32_t> forced(std::span<const uint64_t> allowed);
  // A token came that has this text.
  void take(std::string_view piece);

 private:
  enum class state : uint8_t { start, thinking, over };
  thinking_bound(const tokenizer::tokenizer& tokens, thinking_options o, bool by_text);
  [[nodiscard]] std::optional<std::vector<int32_t>> tokens_of(std::string_view text) const;
  void plan();
  void take_start(char c);
  void take_thinking(char c);

  const tokenizer::tokenizer* tokens_;
  thinking_options options_;
  bool by_text_;
  std::vector<std::size_t> fallback_;  // of the ending tag, by bytes that match
  std::vector<int32_t> whole_;         // the tokens of the ending tag
  state now_;
  std::string word_;             // of the begin of the answer
  std::size_t matched_ = 0;      // bytes of the ending tag in which the text ends
  int64_t n_ = 0;                // tokens
  std::vector<int32_t> coming_;  // forced ones, the next one last
  bool is_forcing_ = false;      // the last token was forced
};

}  // namespace bitnet::generate
