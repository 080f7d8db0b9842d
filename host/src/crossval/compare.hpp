#pragma once
// How far the logits of two engines are from each other, position by position. Numbers only.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace bitnet::host::crossval {

// What still counts as the same.
struct bounds {
  double min_cosine = 0;
  double max_abs = std::numeric_limits<double>::infinity();
};

struct row_difference {
  bool finite = true;    // of both; without it the numbers below mean nothing
  double cosine = 1;     // of two rows of zeros 1, of one such row 0
  double max_abs = 0;    // largest distance of two logits
  bool same_top = true;  // the largest logit is that of the same token, the first of several
};
// Shapes  (n_vocab) both.
[[nodiscard]] row_difference compare_rows(std::span<const float> ours,
                                          std::span<const float> theirs);

// All positions of a prompt: position i is behind its token i.
class prompt_comparison {
 public:
  prompt_comparison(std::span<const int32_t> ours, std::span<const int32_t> theirs,
                    const bounds& within);
  // Of the next position that both have in common.
  void add(const row_difference& row);

  struct outcome {
    std::size_t n_ours = 0, n_theirs = 0;  // tokens
    std::optional<std::size_t> first_other_token;
    std::size_t n_compared = 0;  // positions
    // Of positions with finite logits; nothing where there are none.
    std::optional<double> min_cosine, max_abs;
    std::size_t min_cosine_at = 0, max_abs_at = 0;
    std::size_t n_same_top = 0;
    std::optional<std::size_t> first_other_top;
    std::optional<std::size_t> first_beyond;  // outside of the bounds, or not finite
    std::optional<std::size_t> first_not_finite;
    [[nodiscard]] bool agrees() const { return !first_other_token && !first_beyond; }
  };
  [[nodiscard]] const outcome& found() const { return outcome_; }

 private:
  bounds within_;
  outcome outcome_;
};

}  // namespace bitnet::host::crossval
