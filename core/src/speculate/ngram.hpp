#pragma once
// Prompt look-up: drafts the tokens that followed when the sequence's last tokens came before.
//
// Of the earlier places with the same last `size` tokens, the latest 16 are compared, and the one
// with the longest common past wins; of equals the latest.
//
// Cost    O(1) for each token of the sequence, once, and O(most) for a draft; some 50 bytes for
//         each token.

#include <unordered_map>

#include "speculate/drafter.hpp"

namespace bitnet::speculate {

class ngram final : public drafter {
 public:
  explicit ngram(uint32_t size) : size_(size) {}  // > 0

  result<void> propose(std::span<const int32_t> tokens, uint32_t most,
                       std::vector<int32_t>& draft) override;
  [[nodiscard]] const char* name() const override { return "ngram"; }

 private:
  [[nodiscard]] uint64_t key_of(std::span<const int32_t> tokens, std::size_t end) const;
  void note(std::span<const int32_t> tokens);
  [[nodiscard]] std::size_t find(std::span<const int32_t> tokens) const;

  const uint32_t size_;
  std::unordered_map<uint64_t, uint32_t> last_;  // by n-gram: the last position behind it
  std::vector<uint32_t> previous_;  // by such a position: the one before of the same key; 0: none
};

}  // namespace bitnet::speculate
