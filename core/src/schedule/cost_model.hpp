#pragma once
// How many tokens of prompts a step may carry beside its decodes, from what steps took so far.
//
// Model    a step takes d + p * n: d of its decodes alone, p of each of its n tokens of prompts.
//          Both are moving averages; d is kept for 1, 2, 3-4, 5-8, ... decodes. p is learned from
//          pieces of measured_chunk tokens and more: a smaller piece would count its fixed cost as
//          a cost of its tokens, and so keep pieces small.
// Threads  one at a time.

#include <array>
#include <chrono>
#include <cstdint>

namespace bitnet::schedule {

// Where the cost bounds the prompts of a step, its rows (one for each decode and each prompt token)
// are a multiple of this. Rounding down to a larger multiple leaves more of the bound unused:
// beside 8 decodes a prompt took 2.4 times as long as alone with 8, and 1.9 times with 2
// (docs/reference/benchmarks-serving.md, "Many sequences").
inline constexpr uint32_t row_grain = 2;
// Prompts get at least this many tokens of a step with decodes. Behind a long context one prompt
// token can take as long as a step, so a larger minimum would delay the decodes. Measured behind
// 32 000 tokens: with 8 prompt tokens in a step, the gap between two tokens was six times as long
// as without.
inline constexpr uint32_t least_chunk = 2;
// The smallest piece that p is learned from, and what prompts get while p is not known.
inline constexpr uint32_t measured_chunk = 8;

class cost_model {
 public:
  // A step with decodes takes at most `stretch` (> 1) times as long as without prompts.
  explicit cost_model(double stretch) : stretch_(stretch) {}

  // Updates the model with a step of `n_decodes` decodes and `n_prompt` prompt tokens that took
  // `took`.
  void learn(uint32_t n_decodes, uint32_t n_prompt, std::chrono::nanoseconds took);

  // Prompt tokens for the next step: at least least_chunk, now and then measured_chunk; together
  // with the decodes a multiple of row_grain. 0: the next step is to have decodes alone, since
  // their time is unknown or was measured too long ago.
  [[nodiscard]] uint32_t prompt_tokens(uint32_t n_decodes) const;
  // Nanoseconds that a step of `n_decodes` decodes alone takes; 0: unknown.
  [[nodiscard]] double decode_ns(uint32_t n_decodes) const;
  // prompt_tokens() returns it if there are no decodes, or a prompt token costs nothing.
  static constexpr uint32_t no_bound = UINT32_MAX;

 private:
  class average {
   public:
    void add(double value);
    void set(double value) { value_ = value; }
    [[nodiscard]] bool known() const { return known_; }
    [[nodiscard]] double value() const { return value_; }

   private:
    bool known_ = false;
    double value_ = 0;
  };
  struct of_decodes {
    average ns;
    uint32_t steps_since = 0;  // with as many decodes and with prompts, since `ns`
  };
  static std::size_t kind_of(uint32_t n_decodes);

  double stretch_;
  std::array<of_decodes, 33> decodes_;
  average prompt_ns_;            // of a token
  uint32_t small_in_a_row_ = 0;  // successive steps whose piece was too small to learn p from
};

}  // namespace bitnet::schedule
