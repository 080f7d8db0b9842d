#pragma once
// Bounds the thinking of an answer: forces the ending tag once the thinking's tokens are used up.
//
// Thinking  begins with the answer where the prompt has opened it, else where the answer's first
//           word is the tag that opens it. It ends at the tag that ends it, and comes once.
// Tokens    those behind the opening tag are counted. When as many as allowed have come, the tokens
//           of the ending tag are forced; if the text already ends in the tag's beginning, only
//           those of the rest.
// Grammar   if a grammar does not allow a forced token, it is tried again behind the next token.
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
  bool is_open = false;      // the prompt has opened the thinking
  std::string begins;        // "<think>"; "": only a prompt opens it
  std::string ends;          // "</think>"; "": no bound

  [[nodiscard]] bool is_bound() const { return most_tokens >= 0 && !ends.empty(); }
};
inline constexpr std::size_t most_thinking_tag = 64;  // bytes

class thinking_bound {
 public:
  // `tokens` is borrowed. `by_text`: no control token may come, because of a grammar.
  // BITNET_INVALID_ARGUMENT for tags that are too long; BITNET_UNSUPPORTED where the vocabulary
  // cannot write the tag that ends it.
  static result<thinking_bound> make(const tokenizer::tokenizer& tokens, thinking_options o,
                                     bool by_text);

  // The token that must come next, if any. `allowed`: a grammar's bits by id; empty: all.
  std::optional<int32_t> forced(std::span<const uint64_t> allowed);
  // Notes the token that came, by its text.
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
  std::vector<std::size_t> fallback_;  // of the ending tag, by the number of matching bytes
  std::vector<int32_t> whole_;         // the tokens of the ending tag
  state now_;
  std::string word_;             // the beginning of the answer
  std::size_t matched_ = 0;      // bytes of the ending tag that the text ends with
  int64_t n_ = 0;                // tokens of the thinking
  std::vector<int32_t> coming_;  // forced tokens, the next one last
  bool is_forcing_ = false;      // the last token was forced
};

}  // namespace bitnet::generate
