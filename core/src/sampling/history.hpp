#pragma once
// The tokens that penalties apply to: the last n of the sequence, or all of them.

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <unordered_map>
#include <vector>

namespace bitnet::sampling {

class history {
 public:
  explicit history(int32_t last_n);  // -1 = all

  void add(int32_t token);
  void clear();
  using counted = std::pmr::unordered_map<int32_t, uint32_t>;
  [[nodiscard]] const counted& counts() const { return counts_; }

 private:
  int32_t last_n_;
  std::vector<int32_t> window_;                   // a ring once it is full; unused when all count
  std::size_t oldest_ = 0;                        // index in window_
  std::pmr::unsynchronized_pool_resource nodes_;  // so that a token allocates nothing
  counted counts_{&nodes_};
};

}  // namespace bitnet::sampling
