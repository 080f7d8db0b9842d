#pragma once
// Guesses the next tokens of a sequence. A guess costs or saves time and never changes a text: the
// model itself verifies every guessed token.
//
// Owner   one sequence.
// Threads one at a time.

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"

namespace bitnet::speculate {

class drafter {
 public:
  drafter() = default;
  drafter(const drafter&) = delete;
  drafter& operator=(const drafter&) = delete;
  virtual ~drafter() = default;

  // Appends at most `most` (> 0) tokens to `draft`, which is empty: a guess of what follows
  // `tokens`, the prompt and all that was sampled. From call to call `tokens` only grows. After a
  // failure there is no further call.
  virtual result<void> propose(std::span<const int32_t> tokens, uint32_t most,
                               std::vector<int32_t>& draft) = 0;
  // "ngram", "draft"
  [[nodiscard]] virtual const char* name() const = 0;
};

}  // namespace bitnet::speculate
