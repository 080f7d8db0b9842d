// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// Places the parts of a matrix on memory nodes (NUMA), on machines with several sockets. Placement
// is a preference: if a node is full or the system refuses, memory stays where it is.
//
// Linux uses system calls, without libnuma; other systems count as one node.

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstdint>
#include <vector>

namespace bitnet::sdk {

// Addresses [first, last) that a node's workers read.
struct node_part {
  uint64_t first, last;
  uint32_t node;
};

// Parts of a matrix of `bytes` at `address`, with `rows` one after the other. Each worker reads one
// range of rows cut at multiples of `grain`, as team::split() and host::parallel_for() cut them.
// `nodes` has the node of each worker. Parts are whole pages, cut at the page border nearest to a
// range's border; a range without a whole page has no part.
inline std::vector<node_part> parts_of(uint64_t address, uint64_t bytes, uint64_t rows,
                                       uint64_t grain, const std::vector<uint32_t>& nodes,
                                       uint64_t page) {
  std::vector<node_part> out;
  if (rows == 0 || nodes.empty()) return out;
  const uint64_t n = nodes.size(), grains = (rows + grain - 1) / grain;
  const uint64_t begin = (address + page - 1) / page * page, end = (address + bytes) / page * page;
  const auto border = [&](uint64_t worker) {  // before this worker's rows
    const uint64_t row = std::min(grains * worker / n * grain, rows);
    const uint64_t at = bytes / rows * row + bytes % rows * row / rows;
    return std::clamp((address + at + page / 2) / page * page, begin, std::max(begin, end));
  };
  for (uint64_t first = 0; first < n;) {
    uint64_t last = first + 1;
    while (last < n && nodes[last] == nodes[first]) ++last;
    const node_part part{first == 0 ? begin : border(first), last == n ? end : border(last),
                         nodes[first]};
    if (part.first < part.last) out.push_back(part);
    first = last;
  }
  return out;
}

// Rules for the pages of a device's memory.
struct memory_rules {
  bool large_pages = true;
  std::vector<uint32_t> nodes{};  // by worker of the host; empty: one node
};

namespace nodes {

// Constants of <linux/mempolicy.h>, which not every system installs.
constexpr int usual = 0, preferred = 1, interleaved = 3;
constexpr unsigned long move = 2, allowed = 4;
constexpr uint32_t most = 1024, in_word = 8 * sizeof(unsigned long);

struct mask {
  unsigned long words[most / in_word] = {};
  void add(uint32_t node) noexcept {
    if (node < most) words[node / in_word] |= 1UL << node % in_word;
  }
};

// Sets the policy of memory [first, last), of whole pages: for pages to come and, except with
// `usual`, for present ones.
inline void bind(uint64_t first, uint64_t last, int how, const mask& which) noexcept {
#if defined(__linux__)
  if (first < last)  // a wish: its failure leaves memory where it is
    (void)syscall(SYS_mbind, first, last - first, how, how == usual ? nullptr : which.words,
                  how == usual ? 0UL : most + 1UL, how == usual ? 0UL : move);
#else
  (void)first, (void)last, (void)how, (void)which;
#endif
}

// True if this process may use memory of more than one node.
inline bool are_several() noexcept {
  uint32_t n = 0;
#if defined(__linux__)
  mask may;
  if (syscall(SYS_get_mempolicy, nullptr, may.words, 0UL + most, nullptr, allowed) != 0)
    return false;
  for (const unsigned long word : may.words) n += static_cast<uint32_t>(__builtin_popcountl(word));
#endif
  return n > 1;
}

inline uint32_t of_this_thread() noexcept {
  uint32_t node = 0;
#if defined(__linux__)
  if (syscall(SYS_getcpu, nullptr, &node, nullptr) != 0) return 0;
#endif
  return node;
}

// The node of each worker, found by running on it, because the host pins the workers. Empty if all
// are on one node.
template <class Host>
std::vector<uint32_t> of_workers(const Host& host) {
  if (!are_several()) return {};
  std::vector<uint32_t> out(host.width());
  auto ask = [&](uint32_t worker, uint32_t) noexcept { out[worker] = of_this_thread(); };
  if (host.parallel(host.width(), ask) != 0) return {};
  if (std::all_of(out.begin(), out.end(), [&](uint32_t node) { return node == out[0]; })) return {};
  return out;
}

}  // namespace nodes
}  // namespace bitnet::sdk
