#pragma once
// A step with a draft gives a row behind the last token of the sequence and one behind each drafted
// token. The rows are sampled in order, as without a draft, as long as each sampled token is the
// drafted one: then the next row is the very row that a step of its own would have given.
//
//   verification v(draft, top);
//   for (row : rows) if (!v.goes_on(sample(row), next_wish)) break;

#include <algorithm>
#include <cstdint>
#include <span>

#include "generate/generation.hpp"

namespace bitnet::speculate {

// How many of the largest logits the rows of a step with a draft need; 0: all. Each further token
// may add one token with a penalty. A grammar's needs behind a drafted token are not known.
constexpr uint32_t top_logits_of(uint32_t wished, std::size_t n_draft, bool has_grammar) {
  return wished == 0 || has_grammar ? 0 : wished + static_cast<uint32_t>(n_draft);
}

class verification {
 public:
  // `top`: the largest logits that the rows have at least; 0: all. `draft` is borrowed.
  verification(std::span<const int32_t> draft, uint32_t top) : draft_(draft), top_(top) {}
  verification() = default;

  // `token` was sampled from the next row. Returns whether the row behind it exists and has the
  // logits that the generation needs now.
  bool goes_on(int32_t token, const generate::generation::wish& now) {
    if (accepted_ == draft_.size() || token != draft_[accepted_] || !now.more) return false;
    if (top_ != 0 && (now.top_logits == 0 || now.top_logits > top_)) return false;
    ++accepted_;
    return true;
  }
  // How many drafted tokens came, so that their rows are used.
  [[nodiscard]] uint32_t accepted() const { return accepted_; }

 private:
  std::span<const int32_t> draft_;
  uint32_t top_ = 0;
  uint32_t accepted_ = 0;
};

}  // namespace bitnet::speculate
