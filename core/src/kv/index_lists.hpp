#pragma once
// Doubly linked lists of the numbers 0 to n - 1, each in one list at most. All memory is taken at
// the begin, and every operation is O(1).

#include <cstdint>
#include <vector>

namespace bitnet::kv {

class index_lists {
 public:
  // Lists have the numbers 0 to `n_lists` - 1. n + n_lists < 2^32.
  index_lists(uint32_t n, uint32_t n_lists) : n_(n), links_(std::size_t{n} + n_lists) { clear(); }

  static constexpr uint32_t none = UINT32_MAX;

  [[nodiscard]] uint32_t first(uint32_t list) const { return number(links_[n_ + list].next); }
  [[nodiscard]] uint32_t next(uint32_t i) const { return number(links_[i].next); }
  [[nodiscard]] bool empty(uint32_t list) const { return first(list) == none; }

  void push_front(uint32_t list, uint32_t i) { link(i, n_ + list, links_[n_ + list].next); }
  void push_back(uint32_t list, uint32_t i) { link(i, links_[n_ + list].prev, n_ + list); }
  void remove(uint32_t i) {
    links_[links_[i].prev].next = links_[i].next;
    links_[links_[i].next].prev = links_[i].prev;
    links_[i] = {i, i};
  }
  void clear() {
    for (uint32_t i = 0; i < links_.size(); ++i) links_[i] = {i, i};
  }

 private:
  struct pair {
    uint32_t prev, next;
  };
  [[nodiscard]] uint32_t number(uint32_t at) const { return at < n_ ? at : none; }
  void link(uint32_t i, uint32_t prev, uint32_t next) {
    links_[i] = {prev, next};
    links_[prev].next = i;
    links_[next].prev = i;
  }

  uint32_t n_;
  std::vector<pair> links_;  // rings; that of list k goes through n_ + k
};

}  // namespace bitnet::kv
