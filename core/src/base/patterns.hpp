#pragma once
// Many texts, looked for in another one all at once: the automaton of Aho and Corasick.
//
// Cost    finish: linear in the bytes of all patterns. next: over a whole text linear in it,
//         whatever the patterns are. Both times the number of bytes that may follow at one place,
//         256 at most.
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

  // A text that is not empty. Of one that is added twice the first number stays.
  void add(std::string_view text, uint32_t number);
  void finish();  // behind the last add

  // One byte on.
  [[nodiscard]] state next(state from, unsigned char byte) const;
  // The longest pattern that ends here, by its state; `begin` where there is none.
  [[nodiscard]] state longest(state at) const {
    return nodes_[at].number != none ? at : nodes_[at].shorter;
  }
  // The next shorter one that ends where this one does.
  [[nodiscard]] state shorter(state of) const { return nodes_[of].shorter; }
  [[nodiscard]] uint32_t number(state of) const { return nodes_[of].number; }
  // Bytes of the longest beginning of a pattern with which the text so far ends.
  [[nodiscard]] uint32_t depth(state at) const { return nodes_[at].depth; }

 private:
  struct node {
    uint32_t child = none;    // the first
    uint32_t sibling = none;  // the next child of the same parent
    uint32_t number = none;   // of the pattern that ends here
    state fallback = begin;   // the longest other end of this text that begins a pattern
    state shorter = begin;    // the longest pattern among those ends
    uint32_t depth = 0;
    unsigned char byte = 0;
  };
  [[nodiscard]] uint32_t child(state of, unsigned char byte) const;

  std::vector<node> nodes_;
  std::array<state, 256> first_{};  // what `begin` goes to: most bytes of most texts end there
};

}  // namespace bitnet
