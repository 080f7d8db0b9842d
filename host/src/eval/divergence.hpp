#pragma once
// Compares the probabilities of a model, or of a way to compute it, with those of a base.

#include <cstddef>
#include <span>
#include <vector>

#include "eval/likelihood.hpp"

namespace bitnet::host::eval {

// A proportion of cases, with its 95 % Wilson interval.
struct share {
  uint64_t n = 0, of = 0;

  [[nodiscard]] double value() const { return static_cast<double>(n) / static_cast<double>(of); }
  struct interval {
    double low, high;
  };
  [[nodiscard]] interval wilson() const;
};

// A quantile by nearest rank, with the order statistics that bound it with 95 % confidence.
struct quantile {
  double percent = 0, value = 0, low = 0, high = 0;
};

struct divergence_summary {
  uint64_t n = 0;          // positions
  estimate base_ppl, ppl;  // perplexities of the texts' tokens
  estimate log_ratio;      // ln(ppl / base_ppl)
  estimate kld;            // mean of KL(base || this), nats
  double kld_min = 0, kld_max = 0;
  std::vector<quantile> kld_quantiles;
  share same_top;                 // positions where both have the same top token
  estimate delta_p, rms_delta_p;  // probability of the text's token: this - base
  std::vector<quantile> delta_p_quantiles;
};

class divergence {
 public:
  // Adds a position: logits of the base and of this model, of equal size, and the next token of the
  // text.
  void add(std::span<const float> base, std::span<const float> own, std::size_t token);
  [[nodiscard]] divergence_summary summary() const;  // needs at least one position

 private:
  running_mean base_nll_, nll_, log_ratio_, kld_, delta_p_, delta_p_squared_;
  uint64_t n_same_ = 0;
  std::vector<double> all_kld_, all_delta_p_;
};

// `sorted` has at least one value; `percent` is above 0 and below 100.
[[nodiscard]] quantile quantile_of(std::span<const double> sorted, double percent);

}  // namespace bitnet::host::eval
