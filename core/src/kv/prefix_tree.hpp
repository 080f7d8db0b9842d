#pragma once
// The tree of full blocks whose tokens are known. A node is a block; its path from the root is a
// prefix that some sequence had. Children are found by a hash of the whole path, and verified by
// parent and tokens, so that a collision is a miss.
//
// Owner   block_pool, which says which nodes are used. Used nodes stand before their siblings.

#include <cstdint>
#include <span>
#include <vector>

#include "kv/blocks.hpp"
#include "kv/chained_hash.hpp"
#include "kv/index_lists.hpp"

namespace bitnet::kv {

class prefix_tree {
 public:
  prefix_tree(uint32_t n_blocks, uint32_t tokens_per_block, const hash_secret& secret,
              hash_function hash);

  // The place of a block: below `parent` (no_block: the root), by its tokens, of which there are
  // tokens_per_block.
  struct place {
    uint32_t parent = no_block;
    std::span<const int32_t> tokens;
    uint64_t hash = 0;
  };
  [[nodiscard]] place below(uint32_t parent, std::span<const int32_t> tokens) const;

  [[nodiscard]] uint32_t find(const place& at) const;      // no_block: not known
  [[nodiscard]] bool was_removed(const place& at) const;   // lately; the memory of it is bounded
  [[nodiscard]] bool has_children(uint32_t parent) const;  // no_block: of the root
  [[nodiscard]] bool knows(uint32_t block) const { return nodes_[block].known; }
  [[nodiscard]] uint32_t parent(uint32_t block) const { return nodes_[block].parent; }
  [[nodiscard]] uint32_t first_child(uint32_t block) const;  // used ones first; no_block: none

  // Adds `block`, which is used. Needs: the block is not known, no other is known at `at`, and its
  // parent is known.
  void add(uint32_t block, const place& at);
  void set_used(uint32_t block, bool used);
  // `block` must have no children.
  void remove_leaf(uint32_t block);
  void clear();

 private:
  struct node {
    uint64_t hash = 0;
    uint32_t parent = no_block;
    bool known = false;
  };
  [[nodiscard]] uint32_t bucket(uint64_t hash) const;
  [[nodiscard]] uint32_t children_of(uint32_t parent) const;
  [[nodiscard]] std::span<const int32_t> tokens_of(uint32_t block) const;

  const uint32_t n_blocks_, tokens_per_block_;
  const hash_secret secret_;
  const hash_function hash_;
  std::vector<node> nodes_;         // by block
  std::vector<int32_t> tokens_;     // tokens_per_block_ for each block
  index_lists buckets_, siblings_;  // siblings_: a list for each block, and the last for the root
  std::vector<uint64_t> removed_;   // hashes of removed nodes, by their low bits; 0: none
};

}  // namespace bitnet::kv
