#include "shadow/comparing.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

namespace bitnet::shadow {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

int32_t top_of(std::span<const float> row) {
  int32_t top = -1;
  for (std::size_t i = 0; i < row.size(); ++i)
    if (!std::isnan(row[i]) && (top < 0 || row[i] > row[static_cast<std::size_t>(top)]))
      top = static_cast<int32_t>(i);
  return top;
}

// log(sum exp(x)); nothing: the row has no softmax.
std::optional<double> log_sum_exp(std::span<const float> row) {
  double largest = -infinity;
  for (const float x : row) {
    if (std::isnan(x)) return std::nullopt;
    largest = std::max(largest, double{x});
  }
  if (std::isinf(largest)) return std::nullopt;
  double sum = 0;
  for (const float x : row) sum += std::exp(double{x} - largest);
  return largest + std::log(sum);
}

double divergence(std::span<const float> live, std::span<const float> shadow) {
  const auto of_live = log_sum_exp(live), of_shadow = log_sum_exp(shadow);
  if (!of_live || !of_shadow) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  for (std::size_t i = 0; i < live.size(); ++i) {
    const double log_p = double{live[i]} - *of_live;
    const double p = std::exp(log_p);
    if (p > 0) sum += p * (log_p - (double{shadow[i]} - *of_shadow));
  }
  return std::max(sum, 0.0);  // rounding may bring it below
}

// The order of totals::worst.
bool is_worse(const row_difference& a, const row_difference& b) {
  const bool a_has_none = !std::isfinite(a.kl) && !a.same_bytes;
  const bool b_has_none = !std::isfinite(b.kl) && !b.same_bytes;
  if (a_has_none != b_has_none) return a_has_none;
  if (!a_has_none && a.kl != b.kl && std::isfinite(a.kl) && std::isfinite(b.kl)) return a.kl > b.kl;
  return a.max_abs > b.max_abs;
}

}  // namespace

row_difference compare(std::span<const float> live, std::span<const float> shadow) {
  row_difference out;
  out.live_top = top_of(live);
  out.shadow_top = top_of(shadow);
  out.same_bytes = std::memcmp(live.data(), shadow.data(), live.size_bytes()) == 0;
  double largest = 0;
  for (std::size_t i = 0; i < live.size(); ++i) {
    if (!std::isfinite(live[i]) || !std::isfinite(shadow[i])) continue;
    largest = std::max(largest, std::fabs(double{live[i]}));
    out.max_abs = std::max(out.max_abs, std::fabs(double{live[i]} - double{shadow[i]}));
  }
  if (out.max_abs > 0) out.relative = largest > 0 ? out.max_abs / largest : 1;
  out.kl = divergence(live, shadow);
  return out;
}

void totals::add(const row_difference& d, const row_place& at, std::span<const int32_t> tokens) {
  if (rows == 0 || is_worse(d, worst.by)) {
    worst.at = at;
    worst.by = d;
    worst.tokens.assign(tokens.begin(), tokens.end());
  }
  ++rows;
  same_bytes += d.same_bytes ? 1 : 0;
  same_top += d.same_top() ? 1 : 0;
  max_abs = std::max(max_abs, d.max_abs);
  max_relative = std::max(max_relative, d.relative);
  if (!std::isfinite(d.kl)) {
    ++without_kl;
    return;
  }
  sum_kl += d.kl;
  max_kl = std::max(max_kl, d.kl);
}

}  // namespace bitnet::shadow
