#pragma once
// Statistics of samples for the tables of measuring commands.

#include <vector>

namespace bitnet::host {

[[nodiscard]] double mean(const std::vector<double>& x);
[[nodiscard]] double deviation(const std::vector<double>& x);  // 0 for one value
[[nodiscard]] double median(std::vector<double> x);
// Nearest rank: the smallest value that at least `percent` of all values do not exceed. `percent`
// above 0, at most 100; `x` has a value.
[[nodiscard]] double percentile(std::vector<double> x, double percent);

}  // namespace bitnet::host
