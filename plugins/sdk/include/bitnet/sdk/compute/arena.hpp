// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// Places values in one block of memory: values that never live at the same time share bytes.

#include <algorithm>
#include <vector>

#include "bitnet/sdk/handle.hpp"

namespace bitnet::sdk {

// A value is alive from the item that writes it to the last item that reads it, both included.
struct lifetime {
  uint64_t bytes = 0;
  uint64_t first = 0, last = 0;  // items of the schedule
  uint64_t offset = 0;           // the result
};

// Greedy by size: the largest value first, each at the lowest gap. Returns the arena's size, or
// UINT64_MAX if it cannot be counted.
inline uint64_t place(std::vector<lifetime>& values) {
  std::vector<lifetime*> order;
  for (lifetime& v : values)
    if (v.bytes != 0) order.push_back(&v);
  std::sort(order.begin(), order.end(), [](const lifetime* a, const lifetime* b) {
    return a->bytes != b->bytes ? a->bytes > b->bytes : a < b;
  });
  uint64_t size = 0;
  std::vector<const lifetime*> placed;  // by offset
  for (lifetime* v : order) {
    if (v->bytes > (uint64_t{1} << 62)) return UINT64_MAX;
    const uint64_t bytes =
        (v->bytes + memory::alignment - 1) / memory::alignment * memory::alignment;
    uint64_t offset = 0;
    for (const lifetime* p : placed) {
      if (p->last < v->first || v->last < p->first) continue;
      if (offset + bytes <= p->offset) break;
      offset = std::max(offset, p->offset + (p->bytes + memory::alignment - 1) / memory::alignment *
                                                memory::alignment);
    }
    if (offset > (uint64_t{1} << 62)) return UINT64_MAX;
    v->offset = offset;
    size = std::max(size, offset + bytes);
    placed.insert(std::upper_bound(
                      placed.begin(), placed.end(), v,
                      [](const lifetime* a, const lifetime* b) { return a->offset < b->offset; }),
                  v);
  }
  return size;
}

}  // namespace bitnet::sdk
