#pragma once
// A text as a vector of length 1: the hidden states of its tokens, pooled. It computes no hidden
// state: the caller gives the rows, in the order of the tokens, in steps of any size.
//
// Threads one at a time.

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"

namespace bitnet::generate {

// As files number them under <architecture>.pooling_type.
enum class pooling : uint8_t {
  mean = 1,
  cls = 2,  // the first token's row, which no other token influences
  last = 3
};

// The pooling for a file's number; last for 0, which names none. BITNET_UNSUPPORTED for others.
result<pooling> pooling_of(uint32_t number);
const char* name_of(pooling by);

class embedding {
 public:
  explicit embedding(pooling by) : by_(by) {}

  // Whether every token's row is needed, or one row only. For `cls` the caller computes the first
  // token only.
  [[nodiscard]] bool needs_all_rows() const { return by_ == pooling::mean; }
  // Forgets the rows.
  void begin();
  void add(std::span<const float> row);
  // Pools the rows that came, at least one, into `out` of their width. The sum has one order, so
  // that its bits do not depend on steps. BITNET_BAD_DATA if a row is not finite.
  result<void> finish(std::span<float> out) const;

 private:
  pooling by_;
  uint64_t n_rows_ = 0;
  std::vector<double> sum_;  // of all rows, or the last one
};

}  // namespace bitnet::generate
