#include "measure/token_times.hpp"

#include <algorithm>

namespace bitnet::host {
namespace {

double ms(uint64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

bool was_read_late(const token_times& of) {
  return of.tokens_ns.back() - of.tokens_ns.front() < of.generate_ns / 10 * 9;
}

// Within a step the requests' tokens come in any order, so each request's rate is measured between
// its own tokens.
std::optional<double> rate_within(const token_times& of, uint64_t begin, uint64_t end) {
  const auto first = std::ranges::lower_bound(of.tokens_ns, begin);
  const auto behind = std::ranges::upper_bound(of.tokens_ns, end);
  const auto n = static_cast<std::size_t>(behind - first);
  if (n < 2 || 2 * n < of.tokens_ns.size() || *(behind - 1) == *first) return {};
  return static_cast<double>(n - 1) * 1e9 / static_cast<double>(*(behind - 1) - *first);
}

}  // namespace

std::optional<double> first_ms(const token_times& of) {
  if (of.tokens_ns.empty()) return {};
  return ms(of.tokens_ns.front() - of.submitted_ns);
}

void add_between_ms(const token_times& of, std::vector<double>& to) {
  for (std::size_t i = 1; i < of.tokens_ns.size(); ++i)
    to.push_back(ms(of.tokens_ns[i] - of.tokens_ns[i - 1]));
}

std::optional<double> rate_together(std::span<const token_times> all) {
  uint64_t begin = 0, end = UINT64_MAX;
  for (const token_times& one : all) {
    if (one.tokens_ns.empty() || was_read_late(one)) return {};
    begin = std::max(begin, one.tokens_ns.front());
    end = std::min(end, one.tokens_ns.back());
  }
  double sum = 0;
  for (const token_times& one : all) {
    const auto rate = begin < end ? rate_within(one, begin, end) : std::nullopt;
    if (!rate) return {};
    sum += *rate;
  }
  return all.empty() ? std::nullopt : std::optional(sum);
}

}  // namespace bitnet::host
