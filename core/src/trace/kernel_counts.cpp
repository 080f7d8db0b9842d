#include "trace/kernel_counts.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace bitnet::trace {
namespace {

uint64_t grown(uint64_t before, uint64_t now) {
  return now - std::min(before, now);
}

}  // namespace

std::string_view id_of(const bitnet_kernel_stat& stat) {
  return {stat.id, ::strnlen(stat.id, sizeof stat.id)};
}

bool is_same_kernel(const bitnet_kernel_stat& a, const bitnet_kernel_stat& b) {
  return a.op == b.op && id_of(a) == id_of(b);
}

// A backend lists its kernels in a fixed order, so the same index is tried before a search.
std::vector<bitnet_kernel_stat> since(std::span<const bitnet_kernel_stat> before,
                                      std::span<const bitnet_kernel_stat> now) {
  std::vector<bitnet_kernel_stat> out;
  for (std::size_t i = 0; i < now.size(); ++i) {
    bitnet_kernel_stat one = now[i];
    const auto same = [&](const bitnet_kernel_stat& b) { return is_same_kernel(b, one); };
    const auto was = i < before.size() && same(before[i])
                         ? before.begin() + static_cast<std::ptrdiff_t>(i)
                         : std::ranges::find_if(before, same);
    if (was != before.end()) {
      one.calls = grown(was->calls, one.calls);
      one.time_ns = grown(was->time_ns, one.time_ns);
      one.bytes = grown(was->bytes, one.bytes);
    }
    if (one.calls != 0) out.push_back(one);
  }
  return out;
}

}  // namespace bitnet::trace
