// Statistics of a program's kernels, by name.

#include <algorithm>
#include <cstdio>

#include "program.hpp"

namespace bitnet::gpu {

void steps_on::count(const recorded& r, uint32_t n_tokens, bool timed) {
  std::vector<uint64_t> times(timed ? r.nodes.size() : 0);
  const bool known = timed && r.commands->times(times);
  const std::scoped_lock lock(of_.stats_lock_);
  for (uint64_t c = 0; c < r.nodes.size(); ++c) {
    const node& n = of_.plan_.nodes[r.nodes[c]];
    program::counter& to = of_.counters_[r.nodes[c]];
    ++to.calls;
    if (c == 0 || r.nodes[c - 1] != r.nodes[c])  // once for all parts of a matrix
      to.bytes += n.weight_bytes * (n.op == BITNET_OP_EMBED_GATHER ? n_tokens : 1);
    if (known) to.time_ns += times[c];
  }
}

std::vector<bitnet_kernel_stat> program::stats() const {
  const std::scoped_lock lock(stats_lock_);
  std::vector<bitnet_kernel_stat> out;
  for (uint64_t i = 0; i < counters_.size(); ++i) {
    if (counters_[i].calls == 0) continue;
    const node& n = plan_.nodes[i];
    auto at = std::find_if(out.begin(), out.end(),
                           [&](const bitnet_kernel_stat& s) { return n.name == s.id; });
    if (at == out.end()) {
      bitnet_kernel_stat stat{};
      stat.struct_size = sizeof stat;
      stat.op = n.op;
      std::snprintf(stat.id, sizeof stat.id, "%s", n.name.c_str());
      at = out.insert(at, stat);
    }
    at->calls += counters_[i].calls;
    at->time_ns += counters_[i].time_ns;
    at->bytes += counters_[i].bytes;
  }
  return out;
}

}  // namespace bitnet::gpu
