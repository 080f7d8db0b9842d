#pragma once
// Softmax attention of one head over the positions that it sees.

#include <span>
#include <vector>

namespace bitnet::conformance {

// Appends the result of one head of one token, (head_dim), and what it may be off by. `keys` and
// `values` are those of the positions that it sees, each (head_dim). `rounding`: what each of the
// two products may be off by, times the sum of its sizes, where factors are rounded.
void attend_head(std::span<const float> q, std::span<const double* const> keys,
                 std::span<const double* const> values, double scale, std::vector<double>& expected,
                 std::vector<double>& allowed, double rounding = 0);

}  // namespace bitnet::conformance
