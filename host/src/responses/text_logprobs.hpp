#pragma once
// Which log probabilities belong to which text of an answer: those of the tokens whose text a piece
// has. Tokens of thinking, of calls and of the tags around them have no text in the answer.

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "openai/answer.hpp"
#include "openai/answer_blocks.hpp"

namespace bitnet::host::responses {

class text_logprobs {
 public:
  // Of a token that came; its text may come later.
  void add(const openai::token_logprob& one) { waiting_.push_back(one); }
  // What came of the tokens since the last call. `thinks`: the next piece belongs to thinking.
  void take(std::span<const openai::block_event> events, std::span<const openai::block> blocks,
            bool thinks);

  // In OpenAI's form: those of the event `i` of the last take(), and those of a block.
  [[nodiscard]] nlohmann::ordered_json of_event(std::size_t i) const;
  [[nodiscard]] nlohmann::ordered_json of_block(std::size_t index) const;

 private:
  void drop_blanks(const openai::block_event& of);

  std::vector<openai::token_logprob> waiting_;
  std::vector<openai::choice> events_, blocks_;  // by their numbers; the texts are left empty
  bool thought_ = false;                         // before the last call
};

}  // namespace bitnet::host::responses
