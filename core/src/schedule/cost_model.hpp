#pragma once
// How many tokens of prompts a step may carry beside its decodes, from what steps took so far.
//
// Model    a step takes d + p * n: d of its decodes alone, p of each of its n tokens of prompts.
//          Both are moving averages; d is kept for 1, 2, 3-4, 5-8, ... decodes. p is that of pieces
//          of measured_chunk tokens and more: of a smaller one, what a piece costs whatever its
//          size would count as its tokens' cost, and keep it small.
// Threads  one at a time.

#include <array>
#include <chrono>
#include <cstdint>

namespace bitnet::schedule {

// Where the cost bounds the prompts of a step, its rows together, a row for each decode and each
// token of a prompt, are a multiple of this. Rounding down to more leaves more of the bound unused:
// beside 8 decodes a prompt took 2.4 times as long as alone with 8, and 1.9 times with 2
// (docs/reference/benchmarks.md, "Many sequences").
inline constexpr uint32_t row_grain = 2;
// Prompts get at least so many tokens of a step beside decodes. Behind 32 000 others a token of a
// prompt takes as long as a step: with 8 of them a gap was six times as long as without.
inline constexpr uint32_t least_chunk = 2;
// The smallest piece that p is learned from, and what prompts get while p is not known.
inline constexpr uint32_t measured_chunk = 8;

class cost_model {
 public:
  // A step with decodes takes at most `stretch` (> 1) times as long as without prompts.
  explicit cost_model(double stretch) : stretch_(stretch) {}

  // A step of `n_decodes` sequences, and of `n_prompt` tokens beside them, took so long.
  void learn(uint32_t n_decodes, uint32_t n_prompt, std::chrono::nanoseconds took);

  // At least least_chunk, now and then measured_chunk, and a multiple of row_grain with the
  // decodes. 0: the next step is to have decodes alone, since what they take is not known, or was
  // measured too long ago.
  [[nodiscard]] uint32_t prompt_tokens(uint32_t n_decodes) const;
  // What a step of so many decodes alone takes, in nanoseconds; 0: it is not known.
  [[nodiscard]] double decode_ns(uint32_t n_decodes) const;
  // The answer where there are no decodes, and where a token of a prompt costs nothing.
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
    uint32_t steps_since = 0;  // with as many decodes, and prompts
  };
  static std::size_t kind_of(uint32_t n_decodes);

  double stretch_;
  std::array<of_decodes, 33> decodes_;
  average prompt_ns_;            // of a token
  uint32_t small_in_a_row_ = 0;  // steps with smaller pieces than p is learned from
};

}  // namespace bitnet::schedule
