#include "kv/prefix_tree.hpp"

#include <algorithm>
#include <bit>

namespace bitnet::kv {

namespace {

// A power of two, so that the low bits of a hash select the bucket.
uint32_t buckets_for(uint32_t n_blocks) {
  return std::bit_ceil(std::clamp(n_blocks, uint32_t{64}, uint32_t{1} << 30));
}

}  // namespace

prefix_tree::prefix_tree(uint32_t n_blocks, uint32_t tokens_per_block, const hash_secret& secret,
                         hash_function hash)
    : n_blocks_(n_blocks),
      tokens_per_block_(tokens_per_block),
      secret_(secret),
      hash_(hash),
      nodes_(n_blocks),
      tokens_(std::size_t{n_blocks} * tokens_per_block),
      buckets_(n_blocks, buckets_for(n_blocks)),
      siblings_(n_blocks, n_blocks + 1),
      removed_(buckets_for(n_blocks)) {}

prefix_tree::place prefix_tree::below(uint32_t parent, std::span<const int32_t> tokens) const {
  const uint64_t before = parent == no_block ? 0 : nodes_[parent].hash;
  return {parent, tokens, hash_(before, tokens, secret_)};
}

uint32_t prefix_tree::find(const place& at) const {
  for (uint32_t b = buckets_.first(bucket(at.hash)); b != no_block; b = buckets_.next(b))
    if (nodes_[b].hash == at.hash && nodes_[b].parent == at.parent &&
        std::ranges::equal(tokens_of(b), at.tokens))
      return b;
  return no_block;
}

bool prefix_tree::was_removed(const place& at) const {
  return at.hash != 0 && removed_[bucket(at.hash)] == at.hash;
}

bool prefix_tree::has_children(uint32_t parent) const {
  return !siblings_.empty(children_of(parent));
}

uint32_t prefix_tree::first_child(uint32_t block) const {
  return siblings_.first(children_of(block));
}

void prefix_tree::add(uint32_t block, const place& at) {
  nodes_[block] = {at.hash, at.parent, true};
  std::ranges::copy(at.tokens, tokens_.begin() + std::ptrdiff_t{block} * tokens_per_block_);
  buckets_.push_front(bucket(at.hash), block);
  siblings_.push_front(children_of(at.parent), block);
}

void prefix_tree::set_used(uint32_t block, bool used) {
  const uint32_t list = children_of(nodes_[block].parent);
  siblings_.remove(block);
  used ? siblings_.push_front(list, block) : siblings_.push_back(list, block);
}

void prefix_tree::remove_leaf(uint32_t block) {
  const uint64_t hash = nodes_[block].hash;
  removed_[bucket(hash)] = hash;
  buckets_.remove(block);
  siblings_.remove(block);
  nodes_[block] = {};
}

void prefix_tree::clear() {
  std::ranges::fill(nodes_, node{});
  std::ranges::fill(removed_, 0);
  buckets_.clear();
  siblings_.clear();
}

uint32_t prefix_tree::bucket(uint64_t hash) const {
  return static_cast<uint32_t>(hash & (removed_.size() - 1));
}

uint32_t prefix_tree::children_of(uint32_t parent) const {
  return parent == no_block ? n_blocks_ : parent;
}

std::span<const int32_t> prefix_tree::tokens_of(uint32_t block) const {
  return std::span(tokens_).subspan(std::size_t{block} * tokens_per_block_, tokens_per_block_);
}

}  // namespace bitnet::kv
