#pragma once
// Assigns log probabilities to the pieces of an answer's text. Tokens of thinking, of calls and of
// their tags have no text in the answer, so they are left out.

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "openai/answer.hpp"
#include "openai/answer_blocks.hpp"

namespace bitnet::host::responses {

class text_logprobs {
 public:
  // Adds a new token, whose text may come later.
  void add(const openai::token_logprob& one) { waiting_.push_back(one); }
  // Assigns the tokens since the last call. `thinks`: the next piece belongs to thinking.
  void take(std::span<const openai::block_event> events, std::span<const openai::block> blocks,
            bool thinks);

  // In OpenAI's form: for event `i` of the last take(), and for a block.
  [[nodiscard]] nlohmann::ordered_json of_event(std::size_t i) const;
  [[nodiscard]] nlohmann::ordered_json of_block(std::size_t index) const;

 private:
  void drop_blanks(const openai::block_event& of);

  std::vector<openai::token_logprob> waiting_;
  std::vector<openai::choice> events_, blocks_;  // by index; the texts stay empty
  bool thought_ = false;                         // `thinks` of the last call
};

}  // namespace bitnet::host::responses
