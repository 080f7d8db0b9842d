#pragma once
// Which KV blocks are free. The core owns this logic; the plugin owns the storage.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kv/blocks.hpp"

namespace bitnet::kv {

class kv_blocks {
 public:
  explicit kv_blocks(uint32_t n) {
    free_.reserve(n);
    for (uint32_t i = n; i > 0; --i) free_.push_back(i - 1);
  }
  [[nodiscard]] uint32_t available() const { return static_cast<uint32_t>(free_.size()); }

  // Grows or shrinks `table` to what `tokens` tokens need; false, with nothing changed, when there
  // are not enough blocks.
  bool resize(std::vector<uint32_t>& table, uint64_t tokens) {
    const uint32_t wanted = blocks_for(tokens);
    if (wanted > table.size() && wanted - table.size() > free_.size()) return false;
    while (table.size() < wanted) {
      table.push_back(free_.back());
      free_.pop_back();
    }
    while (table.size() > wanted) {
      give_back(table.back());
      table.pop_back();
    }
    return true;
  }

  // Makes the empty `table` as long as `like`, without blocks where that has none; false, with
  // nothing changed, when there are not enough.
  bool resize_like(std::vector<uint32_t>& table, const std::vector<uint32_t>& like) {
    const auto wanted = like.size() - static_cast<std::size_t>(std::ranges::count(like, no_block));
    if (wanted > free_.size()) return false;
    for (const uint32_t block : like) {
      table.push_back(block == no_block ? no_block : free_.back());
      if (block != no_block) free_.pop_back();
    }
    return true;
  }

  // Gives back the blocks [first, last) of `table`, as far as it reaches.
  void drop(std::vector<uint32_t>& table, uint64_t first, uint64_t last) {
    for (uint64_t i = first; i < std::min<uint64_t>(last, table.size()); ++i) {
      give_back(table[i]);
      table[i] = no_block;
    }
  }

  // Takes every free block of `other`, or one of them if there is one.
  void take(kv_blocks& other) {
    free_.insert(free_.end(), other.free_.rbegin(), other.free_.rend());
    other.free_.clear();
  }
  bool take_one(kv_blocks& other) {
    if (other.free_.empty()) return false;
    free_.push_back(other.free_.back());
    other.free_.pop_back();
    return true;
  }

 private:
  void give_back(uint32_t block) {
    if (block != no_block) free_.push_back(block);
  }

  std::vector<uint32_t> free_;
};

}  // namespace bitnet::kv
