#pragma once
// Compares the logits of two engines position by position. Numbers only.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace bitnet::host::crossval {

// The largest difference that still counts as equal.
struct bounds {
  double min_cosine = 0;
  double max_abs = std::numeric_limits<double>::infinity();
};

struct row_difference {
  bool finite = true;    // both rows are; else the numbers below are meaningless
  double cosine = 1;     // 1 for two rows of zeros, 0 if only one is zero
  double max_abs = 0;    // largest difference of two logits
  bool same_top = true;  // both have the same top token, the first of equal ones
};
// Both rows have n_vocab logits.
[[nodiscard]] row_difference compare_rows(std::span<const float> ours,
                                          std::span<const float> theirs);

// Compares all positions of a prompt; position i follows token i.
class prompt_comparison {
 public:
  prompt_comparison(std::span<const int32_t> ours, std::span<const int32_t> theirs,
                    const bounds& within);
  // Adds the row of the next position that both engines have.
  void add(const row_difference& row);

  struct outcome {
    std::size_t n_ours = 0, n_theirs = 0;  // tokens
    std::optional<std::size_t> first_other_token;
    std::size_t n_compared = 0;  // positions
    // Over positions with finite logits; nothing if there are none.
    std::optional<double> min_cosine, max_abs;
    std::size_t min_cosine_at = 0, max_abs_at = 0;
    std::size_t n_same_top = 0;
    std::optional<std::size_t> first_other_top;
    std::optional<std::size_t> first_beyond;  // first position outside the bounds or not finite
    std::optional<std::size_t> first_not_finite;
    [[nodiscard]] bool agrees() const { return !first_other_token && !first_beyond; }
  };
  [[nodiscard]] const outcome& found() const { return outcome_; }

 private:
  bounds within_;
  outcome outcome_;
};

}  // namespace bitnet::host::crossval
