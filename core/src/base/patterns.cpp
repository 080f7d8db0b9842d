#include "base/patterns.hpp"

namespace bitnet {

uint32_t patterns::child(state of, unsigned char byte) const {
  uint32_t at = nodes_[of].child;
  while (at != none && nodes_[at].byte != byte) at = nodes_[at].sibling;
  return at;
}

void patterns::add(std::string_view text, uint32_t number) {
  state here = begin;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    uint32_t to = here == begin && first_[byte] != begin ? first_[byte] : child(here, byte);
    if (to == none) {
      to = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back(
          {.sibling = nodes_[here].child, .depth = nodes_[here].depth + 1, .byte = byte});
      nodes_[here].child = to;
      if (here == begin) first_[byte] = to;
    }
    here = to;
  }
  if (nodes_[here].number == none) nodes_[here].number = number;
}

void patterns::finish() {
  // By depth: a node's fallback is shorter, so it is finished first.
  std::vector<state> order = {begin};
  order.reserve(nodes_.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const state parent = order[i];
    for (uint32_t at = nodes_[parent].child; at != none; at = nodes_[at].sibling) {
      order.push_back(at);
      node& n = nodes_[at];
      n.fallback = parent == begin ? begin : next(nodes_[parent].fallback, n.byte);
      n.shorter = longest(n.fallback);
    }
  }
}

patterns::state patterns::next(state from, unsigned char byte) const {
  while (from != begin) {
    if (const uint32_t to = child(from, byte); to != none) return to;
    from = nodes_[from].fallback;
  }
  return first_[byte];
}

}  // namespace bitnet
