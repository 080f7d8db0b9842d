#include "gates/repeats.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace bitnet::host {
namespace {

std::string difference_of(const std::vector<bitnet_token>& first,
                          const std::vector<bitnet_token>& other) {
  const auto [a, b] = std::ranges::mismatch(first, other);
  const auto at = a - first.begin();
  if (a == first.end() || b == other.end())
    return fmt::format("{} tokens in place of {}", other.size(), first.size());
  return fmt::format("token {} is {} in place of {}", at, *b, *a);
}

}  // namespace

result<repeat_outcome> repeated(const std::vector<bitnet_token>& first, int64_t n,
                                const std::function<result<std::vector<bitnet_token>>()>& again) {
  repeat_outcome out;
  for (int64_t i = 0; i < n; ++i) {
    const auto ids = again();
    if (!ids) return std::unexpected(ids.error());
    if (*ids == first)
      ++out.n_same;
    else if (out.difference.empty())
      out.difference = fmt::format("run {}: {}", i + 1, difference_of(first, *ids));
  }
  return out;
}

}  // namespace bitnet::host
