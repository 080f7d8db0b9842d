// Two facts make eviction O(1). A table that holds a known block holds its parent too (drop_unseen
// cuts the tree where that would end), so all blocks below a cached block are cached. And a table
// releases its last blocks first, so in `cached_` children stand before their parents: the first of
// the list is a leaf, and the least recently used.

#include "kv/block_pool.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

namespace bitnet::kv {

std::size_t copy_list::independent_until(std::size_t begin) const {
  std::size_t end = begin;
  const auto among = [&](const std::vector<uint32_t>& list, uint32_t block) {
    const auto part = std::span(list).subspan(begin, end - begin);
    return std::ranges::find(part, block) != part.end();
  };
  while (end < from.size() && !among(from, to[end]) && !among(to, to[end]) && !among(to, from[end]))
    ++end;
  return end;
}

table& table::operator=(table&& other) noexcept {
  std::swap(blocks_, other.blocks_);
  tokens_ = std::exchange(other.tokens_, 0);
  state_ = std::exchange(other.state_, no_block);
  kept_state_ = std::exchange(other.kept_state_, no_block);
  held_ = std::exchange(other.held_, 0);
  reserved_ = std::exchange(other.reserved_, 0);
  at_most_ = std::exchange(other.at_most_, 0);
  published_ = std::exchange(other.published_, 0);
  dropped_from_ = std::exchange(other.dropped_from_, 0);
  dropped_to_ = std::exchange(other.dropped_to_, 0);
  epoch_ = std::exchange(other.epoch_, 0);
  return *this;
}

block_pool::block_pool(const shape& s, const hash_secret& secret, hash_function hash)
    : shape_(s),
      tree_(s.n_blocks, s.tokens_per_block, secret, hash),
      blocks_(s.n_blocks),
      cached_(s.n_blocks, 1),
      checkpoints_(s.n_blocks, 1) {
  free_.reserve(s.n_blocks);
  for (uint32_t b = s.n_blocks; b > 0; --b) free_.push_back(b - 1);
  free_states_.reserve(s.n_states);
  for (uint32_t i = s.n_states; i > 0; --i) free_states_.push_back(i - 1);
  run_.reserve(s.n_blocks);
}

uint32_t block_pool::available() const {
  return static_cast<uint32_t>(free_.size()) + stats_.blocks_cached - stats_.blocks_reserved;
}

uint32_t block_pool::blocks_of(uint64_t tokens) const {
  return static_cast<uint32_t>((tokens + shape_.tokens_per_block - 1) / shape_.tokens_per_block);
}

block_pool::statistics block_pool::stats() const {
  statistics out = stats_;
  out.blocks_free = static_cast<uint32_t>(free_.size());
  out.blocks_used = shape_.n_blocks - out.blocks_cached - out.blocks_free;
  out.states_free = static_cast<uint32_t>(free_states_.size());
  out.states_used = shape_.n_states - out.states_kept - out.states_free;
  return out;
}

// --- the begin and the end of a table ---

block_pool::run block_pool::find_run(std::span<const int32_t> tokens) {
  const uint32_t n = shape_.tokens_per_block;
  const std::size_t last = tokens.empty() ? 0 : (tokens.size() - 1) / n;
  run out;
  run_.clear();
  while (run_.size() < last) {
    const uint32_t parent = run_.empty() ? no_block : run_.back();
    const auto at = tree_.below(parent, tokens.subspan(run_.size() * n, n));
    const uint32_t b = tree_.find(at);
    if (b == no_block) {
      out.why = tree_.was_removed(at)        ? miss::evicted
                : tree_.has_children(parent) ? miss::differs
                                             : miss::nothing_known;
      break;
    }
    run_.push_back(b);
  }
  const auto no_state = [&](uint32_t b) { return blocks_[b].checkpoint == no_block; };
  while (has_states() && !run_.empty() && no_state(run_.back())) {
    run_.pop_back();
    out.why = miss::state_missing;
  }
  const auto is_cached = [&](uint32_t b) { return blocks_[b].references == 0; };
  out.cached = static_cast<uint32_t>(std::ranges::count_if(run_, is_cached));
  return out;
}

std::expected<block_pool::found, shortage> block_pool::match(table& t,
                                                             std::span<const int32_t> tokens,
                                                             uint32_t blocks_at_most,
                                                             copy_list& copies) {
  const run known = find_run(tokens);
  const auto n = static_cast<uint32_t>(run_.size());
  const uint32_t at_most = std::max(blocks_at_most, n);
  const uint32_t backing = shape_.windows ? n - known.cached : 0;
  if (uint64_t{at_most} - n + known.cached + backing > available())
    return std::unexpected(shortage::blocks);
  if (lacks_state()) return std::unexpected(shortage::states);

  t.blocks_.reserve(at_most);
  t.blocks_.assign(run_.begin(), run_.end());
  for (const uint32_t b : run_) hold(b);
  t.tokens_ = uint64_t{n} * shape_.tokens_per_block;
  t.published_ = t.held_ = n;
  t.epoch_ = epoch_;
  begin(t, at_most);
  if (has_states()) begin_state(t, n == 0 ? no_block : run_.back(), copies);
  stats_.queried_tokens += tokens.size();
  stats_.found_tokens += t.tokens_;
  ++stats_.misses[static_cast<std::size_t>(known.why)];
  return found{t.tokens_, known.why};
}

void block_pool::begin(table& t, uint32_t at_most) {
  t.at_most_ = at_most;
  t.reserved_ = at_most - t.held_;
  stats_.blocks_reserved += t.reserved_;
}

// Gives `t` a state: a copy of that at the block `from`; no_block: one for a sequence's begin.
void block_pool::begin_state(table& t, uint32_t from, copy_list& copies) {
  if (from == no_block) {
    t.state_ = take_state();
    return;
  }
  checkpoints_.remove(from);
  checkpoints_.push_back(0, from);
  const uint32_t kept = blocks_[from].checkpoint;
  t.state_ = take_state();  // may be `kept` itself, if no other is free: no copy then
  if (t.state_ != kept) copy_state(kept, t.state_, copies);
}

bool block_pool::reserve(table& t, uint32_t blocks_at_most) {
  const uint32_t has = t.held_ + t.reserved_;
  if (blocks_at_most <= has) return true;
  const uint32_t more = blocks_at_most - has;
  if (more > available()) return false;
  t.reserved_ += more;
  stats_.blocks_reserved += more;
  t.at_most_ = std::max(t.at_most_, blocks_at_most);
  return true;
}

std::expected<void, shortage> block_pool::fork(const table& parent, table& child,
                                               uint32_t blocks_at_most, copy_list& copies) {
  const uint32_t at_most = std::max(blocks_at_most, parent.held_);
  const bool partial = parent.tokens_ % shape_.tokens_per_block != 0;
  const uint32_t backing = shape_.windows ? parent.held_ : uint32_t{partial};
  if (uint64_t{at_most} - parent.held_ + backing > available())
    return std::unexpected(shortage::blocks);
  if (lacks_state()) return std::unexpected(shortage::states);

  child.blocks_.reserve(std::max<std::size_t>(at_most, parent.blocks_.size()));
  child.blocks_.assign(parent.blocks_.begin(), parent.blocks_.end());
  for (const uint32_t b : child.blocks_)
    if (b != no_block) hold(b);
  if (partial && !shape_.windows) {
    ++blocks_[child.blocks_.back()].backing;
    ++stats_.blocks_reserved;
  }
  child.tokens_ = parent.tokens_;
  child.held_ = parent.held_;
  child.published_ = parent.published_;
  child.dropped_from_ = parent.dropped_from_;
  child.dropped_to_ = parent.dropped_to_;
  child.epoch_ = parent.epoch_;
  begin(child, at_most);
  if (has_states()) {
    child.state_ = take_state();
    copy_state(parent.state_, child.state_, copies);
  }
  return {};
}

void block_pool::release(table& t) {
  for (const uint32_t b : t.blocks_ | std::views::reverse)
    if (b != no_block) let_go(b);
  stats_.blocks_reserved -= t.reserved_;
  if (t.state_ != no_block) free_states_.push_back(t.state_);
  if (t.kept_state_ != no_block) free_states_.push_back(t.kept_state_);
  t = table();
}

void block_pool::forget() {
  tree_.clear();
  for (uint32_t b = cached_.first(0); b != no_block; b = cached_.next(b)) free_.push_back(b);
  cached_.clear();
  stats_.blocks_cached = 0;
  while (!checkpoints_.empty(0)) drop_checkpoint(checkpoints_.first(0));
  ++epoch_;
}

// --- a table between its begin and its end ---

bool block_pool::extend(table& t, uint64_t n_tokens, copy_list& copies) {
  if (n_tokens == 0) return true;
  const uint64_t per_block = shape_.tokens_per_block;
  // Counted in blocks and in 64 bits: the sum of tokens may overflow by a caller's mistake.
  const uint64_t room = t.blocks_.size() * per_block - t.tokens_;
  const uint64_t more = n_tokens <= room ? 0 : (n_tokens - room - 1) / per_block + 1;
  if (more > t.reserved_) return false;
  if (room != 0) make_writable(t, copies);
  for (uint64_t i = 0; i < more; ++i) {
    t.blocks_.push_back(take_reserved(t));
    ++t.held_;
  }
  t.tokens_ += n_tokens;
  return true;
}

// Makes the last block of `t`, which is partial, writable.
void block_pool::make_writable(table& t, copy_list& copies) {
  const uint32_t b = t.blocks_.back();
  if (blocks_[b].references == 1) {
    if (tree_.knows(b)) cut(b);
    return;
  }
  // fork() reserved a block for each table but the last. A table without such a block does not end
  // within a shared one, since whole_until() prevents it.
  --blocks_[b].backing;
  --stats_.blocks_reserved;
  const uint32_t own = take();
  copies.from.push_back(b);
  copies.to.push_back(own);
  --blocks_[b].references;
  t.blocks_.back() = own;
}

void block_pool::publish(table& t, std::span<const int32_t> tokens) {
  if (t.epoch_ != epoch_ || t.dropped_to_ != 0) return;
  const uint32_t n = shape_.tokens_per_block;
  const uint64_t full = std::min<uint64_t>(tokens.size(), t.tokens_) / n;
  for (uint32_t i = t.published_; i < full; ++i) {
    const uint32_t parent = i == 0 ? no_block : t.blocks_[i - 1];
    if (i != 0 && !tree_.knows(parent)) return;
    const uint32_t own = t.blocks_[i];
    if (!tree_.knows(own)) {
      const auto at = tree_.below(parent, tokens.subspan(std::size_t{i} * n, n));
      const uint32_t known = tree_.find(at);
      if (known == no_block)
        tree_.add(own, at);
      else if (hold_known(own, known))
        t.blocks_[i] = known;
      else
        return;
    }
    t.published_ = i + 1;
  }
}

// Exchanges a reference to `own` for one to `known`. Returns false, with nothing changed, if that
// takes a block more than it frees and none is available.
bool block_pool::hold_known(uint32_t own, uint32_t known) {
  const block& o = blocks_[own];
  const bool takes = shape_.windows || blocks_[known].references == 0;
  const bool gives = o.references == 1 || o.backing == o.references - 1;
  if (takes && !gives && available() == 0) return false;
  // In this order: `known` cannot be evicted between, and the block of `own` is not counted yet.
  hold(known);
  let_go(own);
  return true;
}

uint64_t block_pool::truncate(table& t, uint64_t n_tokens, copy_list& copies) {
  if (n_tokens >= t.tokens_) return t.tokens_;
  const uint64_t per_block = shape_.tokens_per_block;
  uint64_t left = whole_until(t, n_tokens);
  if (has_states()) {
    left = last_checkpoint(t, left);
    if (left != 0)
      copy_state(blocks_[t.blocks_[left / per_block - 1]].checkpoint, t.state_, copies);
  }
  while (t.blocks_.size() > blocks_of(left)) {
    const uint32_t b = t.blocks_.back();
    t.blocks_.pop_back();
    if (b != no_block) give_up(t, b);
  }
  t.tokens_ = left;
  t.published_ = std::min(t.published_, static_cast<uint32_t>(left / per_block));
  if (t.blocks_.size() <= t.dropped_from_) t.dropped_from_ = t.dropped_to_ = 0;
  return left;
}

// The largest number <= `n_tokens` of tokens that `t` can go on from.
uint64_t block_pool::whole_until(const table& t, uint64_t n_tokens) const {
  const uint64_t per_block = shape_.tokens_per_block;
  if (n_tokens < t.dropped_to_ * per_block)
    n_tokens = std::min(n_tokens, t.dropped_from_ * per_block);
  const uint64_t over = n_tokens % per_block;
  if (over == 0) return n_tokens;
  const uint32_t b = t.blocks_[n_tokens / per_block];
  const bool writable = !tree_.knows(b) && blocks_[b].backing == blocks_[b].references - 1;
  return writable ? n_tokens : n_tokens - over;
}

void block_pool::drop_unseen(table& t, uint64_t first_seen, uint64_t keep) {
  const uint64_t end = std::min(first_seen, t.tokens_) / shape_.tokens_per_block;
  const uint64_t begin = std::max<uint64_t>(blocks_of(std::min(keep, t.tokens_)), t.dropped_to_);
  if (begin >= end) return;
  for (uint64_t i = end; i-- > begin;) give_up(t, std::exchange(t.blocks_[i], no_block));
  if (t.dropped_to_ == 0) t.dropped_from_ = static_cast<uint32_t>(begin);
  t.dropped_to_ = static_cast<uint32_t>(end);
}

// --- blocks ---

// Returns a block with one reference. The caller has made sure that one is available.
uint32_t block_pool::take() {
  if (free_.empty()) {
    remove(cached_.first(0));
    ++stats_.evicted_blocks;
  }
  const uint32_t b = free_.back();
  free_.pop_back();
  blocks_[b].references = 1;
  return b;
}

uint32_t block_pool::take_reserved(table& t) {
  --t.reserved_;
  --stats_.blocks_reserved;
  return take();
}

// Adds a reference to a block that is known or used.
void block_pool::hold(uint32_t b) {
  if (blocks_[b].references++ != 0) {
    if (!shape_.windows) return;
    ++blocks_[b].backing;
    ++stats_.blocks_reserved;
    return;
  }
  cached_.remove(b);
  --stats_.blocks_cached;
  tree_.set_used(b, true);
}

// Drops a reference. Returns true if a block became available.
bool block_pool::let_go(uint32_t b) {
  block& it = blocks_[b];
  if (--it.references != 0) {
    if (it.backing < it.references) return false;
    --it.backing;
    --stats_.blocks_reserved;
    return true;
  }
  if (!tree_.knows(b)) {
    free_.push_back(b);
    return true;
  }
  // Tables that gave this block up as unseen may hold its children.
  for (uint32_t c = tree_.first_child(b); c != no_block && blocks_[c].references != 0;
       c = tree_.first_child(b))
    cut(c);
  tree_.set_used(b, false);
  cached_.push_back(0, b);
  ++stats_.blocks_cached;
  return true;
}

// Lets go of a block of `t`, which goes on: a block that becomes available is reserved for it.
void block_pool::give_up(table& t, uint32_t b) {
  --t.held_;
  if (!let_go(b) || t.held_ + t.reserved_ >= t.at_most_) return;
  ++t.reserved_;
  ++stats_.blocks_reserved;
}

// Takes `top` and all below it out of the tree.
void block_pool::cut(uint32_t top) {
  for (uint32_t at = top;;) {
    const uint32_t child = tree_.first_child(at);
    if (child != no_block) {
      at = child;
      continue;
    }
    const uint32_t parent = tree_.parent(at);
    remove(at);
    if (at == top) return;
    at = parent;
  }
}

void block_pool::remove(uint32_t leaf) {
  drop_checkpoint(leaf);
  tree_.remove_leaf(leaf);
  if (blocks_[leaf].references != 0) return;
  cached_.remove(leaf);
  --stats_.blocks_cached;
  free_.push_back(leaf);
}

// --- states ---

bool block_pool::lacks_state() const {
  return has_states() && free_states_.empty() && checkpoints_.empty(0);
}

uint32_t block_pool::take_state() {
  if (free_states_.empty()) {
    drop_checkpoint(checkpoints_.first(0));
    ++stats_.evicted_states;
  }
  const uint32_t state = free_states_.back();
  free_states_.pop_back();
  return state;
}

void block_pool::drop_checkpoint(uint32_t b) {
  const uint32_t state = std::exchange(blocks_[b].checkpoint, no_block);
  if (state == no_block) return;
  checkpoints_.remove(b);
  free_states_.push_back(state);
  --stats_.states_kept;
}

bool block_pool::can_keep_state(const table& t) const {
  return has_states() && t.epoch_ == epoch_ && t.tokens_ != 0 &&
         t.tokens_ % shape_.tokens_per_block == 0 && t.published_ == t.blocks_.size() &&
         tree_.knows(t.blocks_.back());
}

bool block_pool::checkpoint(table& t, copy_list& copies) {
  if (!can_keep_state(t)) return false;
  const uint32_t b = t.blocks_.back();
  if (blocks_[b].checkpoint != no_block) {
    checkpoints_.remove(b);
  } else {
    if (lacks_state()) return false;
    blocks_[b].checkpoint = take_state();
    ++stats_.states_kept;
    copy_state(t.state_, blocks_[b].checkpoint, copies);
  }
  checkpoints_.push_back(0, b);
  return true;
}

bool block_pool::keep_state(table& t, copy_list& copies) {
  if (t.kept_state_ == no_block) {
    if (lacks_state()) return false;
    t.kept_state_ = take_state();
  }
  copy_state(t.state_, t.kept_state_, copies);
  return true;
}

void block_pool::go_back(table& t) {
  std::swap(t.state_, t.kept_state_);
  drop_kept(t);
}

void block_pool::drop_kept(table& t) {
  const uint32_t kept = std::exchange(t.kept_state_, no_block);
  if (kept != no_block) free_states_.push_back(kept);
}

bool block_pool::leave_checkpoint(table& t) {
  if (!can_keep_state(t)) return false;
  const uint32_t b = t.blocks_.back();
  if (blocks_[b].checkpoint != no_block) {
    checkpoints_.remove(b);
  } else {
    blocks_[b].checkpoint = std::exchange(t.state_, no_block);
    ++stats_.states_kept;
  }
  checkpoints_.push_back(0, b);
  return true;
}

// The end of the last block with a checkpoint within the first `n_tokens`; 0: none.
uint64_t block_pool::last_checkpoint(const table& t, uint64_t n_tokens) const {
  uint64_t i = std::min<uint64_t>(n_tokens / shape_.tokens_per_block, t.published_);
  const auto has_one = [&](uint32_t b) {
    return b != no_block && blocks_[b].checkpoint != no_block;
  };
  while (i > 0 && !has_one(t.blocks_[i - 1])) --i;
  return i * shape_.tokens_per_block;
}

void block_pool::copy_state(uint32_t from, uint32_t to, copy_list& copies) const {
  copies.from.push_back(shape_.n_blocks + from);
  copies.to.push_back(shape_.n_blocks + to);
}

}  // namespace bitnet::kv
