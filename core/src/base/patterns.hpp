#pragma once
// Searches a text for many patterns at once, with the automaton of Aho and Corasick.
//
// Cost    finish: linear in the bytes of all patterns. next over a whole text: linear in the text,
//         whatever the patterns are. Both times the number of children of a node, at most 256.
// Threads immutable after finish.
// Source  A. V. Aho, M. J. Corasick: Efficient string matching, CACM 18 (1975).

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace bitnet {

class patterns {
 public:
  using state = uint32_t;
  static constexpr state begin = 0;
  static constexpr uint32_t none = 0xffffffff;

  patterns() : nodes_(1) { first_.fill(begin); }

  // `text` is not empty. A text that is added again keeps its first number.
  void add(std::string_view text, uint32_t number);
  void finish();  // call it after the last add

  // The state after one more byte.
  [[nodiscard]] state next(state from, unsigned char byte) const;
  // The state of the longest pattern that ends here; `begin` if there is none.
  [[nodiscard]] state longest(state at) const {
    return nodes_[at].number != none ? at : nodes_[at].shorter;
  }
  // The state of the next shorter pattern that ends here.
  [[nodiscard]] state shorter(state of) const { return nodes_[of].shorter; }
  [[nodiscard]] uint32_t number(state of) const { return nodes_[of].number; }
  // Bytes of the longest prefix of a pattern that the text so far ends with.
  [[nodiscard]] uint32_t depth(state at) const { return nodes_[at].depth; }

 private:
  struct node {
    uint32_t child = none;    // the first child
    uint32_t sibling = none;  // the next child of the same parent
    uint32_t number = none;   // of the pattern that ends here
    state fallback = begin;   // longest proper suffix that is a prefix of a pattern
    state shorter = begin;    // the longest pattern among those suffixes
    uint32_t depth = 0;
    unsigned char byte = 0;
  };
  [[nodiscard]] uint32_t child(state of, unsigned char byte) const;

  std::vector<node> nodes_;
  std::array<state, 256> first_{};  // successors of `begin`, the most frequent state
};

}  // namespace bitnet
