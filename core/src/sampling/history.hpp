#pragma once
// The tokens that the penalties look at: the last n of the sequence, or all of them.

#include <cstdint>
#include <deque>
#include <unordered_map>

namespace bitnet::sampling {

class history {
 public:
  explicit history(int32_t last_n) : last_n_(last_n) {}  // -1 = all

  void add(int32_t token);
  void clear();
  [[nodiscard]] const std::unordered_map<int32_t, uint32_t>& counts() const { return counts_; }

 private:
  int32_t last_n_;
  std::deque<int32_t> window_;  // unused when all count
  std::unordered_map<int32_t, uint32_t> counts_;
};

}  // namespace bitnet::sampling
