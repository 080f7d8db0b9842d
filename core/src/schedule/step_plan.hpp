#pragma once
// Which sequences a step computes, and how many tokens of each: all decodes, then chunks of
// prompts.
//
// Bounds   prompts get what the decodes leave of the step's tokens, and no more than
//          step_bounds::prompt_tokens together.

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/step.hpp"

namespace bitnet::schedule {

// What a sequence still has to compute before it gets its next row.
struct work {
  uint64_t tokens = 0;    // >= 1; 1: a decode
  uint64_t break_at = 0;  // a chunk has at most this many of them; 0: no bound
  bool is_ahead = false;  // a decode of several tokens, computed in one step: a draft or a replay

  [[nodiscard]] bool is_decode() const { return tokens == 1 || is_ahead; }
};

struct share {
  uint32_t index = 0;  // of the work
  uint32_t n_tokens = 0;
};

struct step_bounds {
  uint32_t tokens = 0;         // of the step
  uint32_t prompt_tokens = 0;  // the most of these for prompts; 0: no prompts beside decodes
};

// The most sequences that may run at a time, so that a step always takes all of their decodes, or
// one chunk and the decodes of the others. At least 1.
uint32_t max_running_of(const step_limits& most);

// `shares` get the decodes in the order of `all`, as far as they fit, then prompts in `order`
// (indices of `all`; those of decodes are passed over). max_running_of() bounds the size of `all`.
void plan_step(std::span<const work> all, std::span<const uint32_t> order, const step_bounds& most,
               std::vector<share>& shares);

}  // namespace bitnet::schedule
