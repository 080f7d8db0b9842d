#pragma once
// How far the probabilities of one model, or one way to compute it, are from those of another.

#include <cstddef>
#include <span>
#include <vector>

#include "eval/likelihood.hpp"

namespace bitnet::host::eval {

// A share of a number of cases, with Wilson's interval of 95 %.
struct share {
  uint64_t n = 0, of = 0;

  [[nodiscard]] double value() const { return static_cast<double>(n) / static_cast<double>(of); }
  struct interval {
    double low, high;
  };
  [[nodiscard]] interval wilson() const;
};

// The value of nearest rank, between the order statistics that bound it with 95 %.
struct quantile {
  double percent = 0, value = 0, low = 0, high = 0;
};

struct divergence_summary {
  uint64_t n = 0;          // positions
  estimate base_ppl, ppl;  // of the texts' tokens
  estimate log_ratio;      // ln(ppl / base_ppl)
  estimate kld;            // mean of KL(base || this), nats
  double kld_min = 0, kld_max = 0;
  std::vector<quantile> kld_quantiles;
  share same_top;                 // positions where both hold the same token for the likeliest
  estimate delta_p, rms_delta_p;  // of the probability of the text's token: this - base
  std::vector<quantile> delta_p_quantiles;
};

class divergence {
 public:
  // Logits of the base and of this, of equal size, and the token that follows in the text.
  void add(std::span<const float> base, std::span<const float> own, std::size_t token);
  [[nodiscard]] divergence_summary summary() const;  // of at least one position

 private:
  running_mean base_nll_, nll_, log_ratio_, kld_, delta_p_, delta_p_squared_;
  uint64_t n_same_ = 0;
  std::vector<double> all_kld_, all_delta_p_;
};

// Of sorted values, at least one; percent above 0 and below 100.
[[nodiscard]] quantile quantile_of(std::span<const double> sorted, double percent);

}  // namespace bitnet::host::eval
