#include "timings.hpp"

#include <algorithm>

namespace bitnet::cpu {
namespace {

uint64_t at_part(const std::vector<uint64_t>& sorted, std::size_t numerator,
                 std::size_t denominator) {
  return sorted.empty() ? 0 : sorted[(sorted.size() - 1) * numerator / denominator];
}

}  // namespace

uint64_t median(std::vector<uint64_t> x) {
  std::ranges::sort(x);
  return at_part(x, 1, 2);
}

double spread(std::vector<uint64_t> x) {
  std::ranges::sort(x);
  const uint64_t low = at_part(x, 1, 4), middle = at_part(x, 1, 2), high = at_part(x, 3, 4);
  return middle == 0 ? 0 : static_cast<double>(high - low) / static_cast<double>(middle);
}

std::size_t best_of(const timings& all, std::size_t usual, const proof& asked) {
  constexpr uint64_t unit = 1'000'000;  // parts of a candidate's time are in millionths
  std::size_t best = usual;
  uint64_t least = asked.time * 1000;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == usual || median(all[i]) >= median(all[usual])) continue;
    std::vector<uint64_t> parts;
    std::size_t faster = 0;
    for (std::size_t round = 0; round < all[i].size(); ++round) {
      const uint64_t beside = std::max<uint64_t>(all[usual][round], 1);
      parts.push_back(all[i][round] * unit / beside);
      faster += all[i][round] < beside ? 1 : 0;
    }
    const uint64_t part = median(parts);
    if (parts.empty() || part >= least || 1000 * faster < asked.rounds * parts.size()) continue;
    best = i;
    least = part;
  }
  return best;
}

}  // namespace bitnet::cpu
