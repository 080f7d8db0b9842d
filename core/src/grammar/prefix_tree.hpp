#pragma once
// The texts of a vocabulary as a tree, so that common beginnings of tokens are looked at once.
//
// Packing  nodes in depth-first order; a walk that skips a node goes on at its `behind`. 12 bytes
//          each; a vocabulary of 128k words has about 400k of them.
// Plain    tokens of few plain characters, which most are, are also kept as sets by length: they
//          need no walk if a state takes that many plain characters of any kind.
// Threads  immutable after construction.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace bitnet::grammar {

class prefix_tree {
 public:
  struct node {
    uint32_t behind;       // the next node that is not below this one
    uint32_t first_token;  // of the tokens that end here; see tokens_at()
    uint16_t depth;        // bytes from the root, this one included
    unsigned char byte;
  };

  static constexpr uint32_t longest_plain = 16;  // characters

  // `text_of` gives the bytes of each id below n_vocab; ids without bytes are left out.
  prefix_tree(uint32_t n_vocab, const std::function<std::string(int32_t)>& text_of);

  [[nodiscard]] uint32_t n_vocab() const { return n_vocab_; }
  [[nodiscard]] std::span<const node> nodes() const { return {nodes_.data(), nodes_.size() - 1}; }
  // Ids whose text ends at a node.
  [[nodiscard]] std::span<const int32_t> tokens_at(std::size_t place) const {
    const uint32_t first = nodes_[place].first_token;
    return std::span(tokens_).subspan(first, nodes_[place + 1].first_token - first);
  }
  [[nodiscard]] std::size_t longest() const { return longest_; }  // bytes of a token

  // Bits by id of the tokens with 1 to n plain characters; n <= longest_plain.
  [[nodiscard]] std::span<const uint64_t> plain(uint32_t n) const { return plain_[n]; }
  // The tree of all tokens that are in no plain() set.
  [[nodiscard]] const prefix_tree& others() const { return *others_; }

 private:
  using word = std::pair<std::string, int32_t>;

  prefix_tree(uint32_t n_vocab, std::vector<word> words);
  void build(const std::vector<word>& words);

  uint32_t n_vocab_;
  std::vector<node> nodes_;  // with one more behind the last
  std::vector<int32_t> tokens_;
  std::size_t longest_ = 0;
  std::vector<std::vector<uint64_t>> plain_;
  std::unique_ptr<const prefix_tree> others_;
};

}  // namespace bitnet::grammar
