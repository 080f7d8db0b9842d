#pragma once
// The difference of two rows of logits for the same tokens, and sums over many such pairs.
//
// A logit of -infinity is a token that cannot come. NaN, +infinity, and a row of which no token can
// come have no softmax, so a pair with one of them has no KL divergence.

#include <cstdint>
#include <span>
#include <vector>

#include "generate/row_listener.hpp"

namespace bitnet::shadow {

struct row_difference {
  // KL(live || shadow) in nats, >= 0. Infinity: the shadow excludes a token that may come live.
  // NaN: one of the rows has no softmax.
  double kl = 0;
  double max_abs = 0;   // largest |live - shadow|, of tokens whose logits are both finite
  double relative = 0;  // max_abs divided by the largest |live|; 1 if that is 0
  // The largest logit, by the lowest id where several are; NaN is left out. -1: all are NaN.
  int32_t live_top = -1, shadow_top = -1;
  bool same_bytes = false;

  [[nodiscard]] bool same_top() const { return live_top == shadow_top && live_top >= 0; }
};

// The rows have equally many logits.
row_difference compare(std::span<const float> live, std::span<const float> shadow);

// Where a row comes from.
struct row_place {
  uint64_t source =
      0;  // the session or scheduler, by the order in which the shadow got them, from 1
  generate::row_origin of;
  uint64_t position = 0;  // of the last token before the row
};

struct totals {
  uint64_t rows = 0, same_bytes = 0, same_top = 0;
  uint64_t without_kl = 0;  // rows whose KL is infinity or NaN: they are in neither mean nor max
  double sum_kl = 0, max_kl = 0;
  double max_abs = 0, max_relative = 0;

  // The row that differs most: one without KL before all others, then by KL, then by max_abs; of
  // equal ones the first. rows == 0: none yet.
  struct {
    row_place at;
    row_difference by;
    std::vector<int32_t> tokens;
  } worst;

  [[nodiscard]] double mean_kl() const {
    return rows == without_kl ? 0 : sum_kl / static_cast<double>(rows - without_kl);
  }
  void add(const row_difference& d, const row_place& at, std::span<const int32_t> tokens);
};

}  // namespace bitnet::shadow
