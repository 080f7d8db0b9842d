#pragma once
// A block pool beside an obvious model of it. The model stores what each block and state contains,
// and keeps the known prefixes in a map by their tokens; it predicts what is found, evicted, cut
// and counted. Every operation runs on both and compares them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "kv/block_pool.hpp"
#include "test_secret.hpp"

namespace bitnet::kv {

using tokens = std::vector<int32_t>;

inline tokens first_of(const tokens& all, std::size_t n) {
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n)};
}
inline bool begins_with(const tokens& all, const tokens& prefix) {
  return all.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), all.begin());
}

inline const hash_secret& secret() {
  static const hash_secret it = test_secret(1);
  return it;
}

class modelled_pool {
 public:
  struct sequence {
    table t;
    tokens is;  // all of its tokens, whose keys are computed
    uint32_t at_most = 0;
    bool live = false, dropped = false;
  };

  modelled_pool(const shape& s, std::size_t n_sequences, hash_function hash = chained_hash)
      : shape_(s),
        collisions_(hash != chained_hash),
        pool_(s, secret(), hash),
        memory_(s.n_blocks),
        state_memory_(s.n_states),
        references_(s.n_blocks),
        sequences_(n_sequences) {}

  sequence& at(std::size_t i) { return sequences_[i]; }
  [[nodiscard]] const block_pool& pool() const { return pool_; }
  [[nodiscard]] std::size_t size() const { return sequences_.size(); }
  [[nodiscard]] uint64_t found() const { return found_; }
  [[nodiscard]] uint64_t copied() const { return copied_; }  // blocks and states

  // Each answers whether the operation can be done now; then it was.
  bool match(std::size_t i, const tokens& prompt, uint32_t blocks_at_most);
  bool extend(std::size_t i, const tokens& more);
  bool reserve(std::size_t i, uint32_t blocks_at_most);
  bool publish(std::size_t i);
  bool fork(std::size_t from, std::size_t to, uint32_t blocks_at_most);
  bool truncate(std::size_t i, uint64_t n);
  bool drop_unseen(std::size_t i, uint64_t first_seen, uint64_t keep);
  bool checkpoint(std::size_t i);
  bool release(std::size_t i);

  void check() const;
  [[nodiscard]] std::vector<uint64_t> fingerprint() const;  // equal for equal states of the model

 private:
  struct known {
    uint32_t block;
    uint64_t last_use = 0;        // when its last table let go
    uint64_t checkpoint_use = 0;  // 0: none
    uint32_t state = no_block;
    bool used = false;
  };
  [[nodiscard]] std::size_t per_block() const { return shape_.tokens_per_block; }
  [[nodiscard]] uint32_t references(uint32_t block) const { return references_[block]; }
  [[nodiscard]] uint32_t n_used() const;
  [[nodiscard]] uint32_t n_cached() const;
  [[nodiscard]] uint32_t backing() const;
  void check_reason(const tokens& prompt, uint32_t n, uint32_t longest, miss why) const;
  void run_copies();
  void take(uint32_t n);
  void take_state();
  void update_uses();
  void forget(const tokens& prefix);

  shape shape_;
  bool collisions_;
  block_pool pool_;
  std::vector<tokens> memory_, state_memory_;
  std::vector<uint32_t> references_;  // by block, after the last operation
  std::vector<sequence> sequences_;
  std::map<tokens, known> known_;
  std::set<tokens> removed_;
  copy_list copies_;
  uint64_t now_ = 0, found_ = 0, copied_ = 0;
};

inline uint32_t modelled_pool::n_used() const {
  return static_cast<uint32_t>(
      std::ranges::count_if(references_, [](uint32_t n) { return n != 0; }));
}

inline uint32_t modelled_pool::n_cached() const {
  return static_cast<uint32_t>(
      std::ranges::count_if(known_, [](const auto& k) { return !k.second.used; }));
}

// What is reserved for shared blocks.
inline uint32_t modelled_pool::backing() const {
  std::vector<uint32_t> sharing = references_;
  if (!shape_.windows) {
    std::ranges::fill(sharing, 0u);
    for (const sequence& s : sequences_)
      if (s.t.tokens() % per_block() != 0) ++sharing[s.t.blocks().back()];
  }
  uint32_t n = 0;
  for (const uint32_t tables : sharing) n += tables > 1 ? tables - 1 : 0;
  return n;
}

inline void modelled_pool::run_copies() {
  for (std::size_t begin = 0, end = 0; begin < copies_.from.size(); begin = end) {
    end = copies_.independent_until(begin);
    ASSERT_GT(end, begin);
    for (std::size_t i = end; i-- > begin;) {  // in any order
      const uint32_t from = copies_.from[i], to = copies_.to[i];
      ASSERT_EQ(from < shape_.n_blocks, to < shape_.n_blocks) << "a state to a state";
      if (from < shape_.n_blocks)
        memory_[to] = memory_[from];
      else
        state_memory_[to - shape_.n_blocks] = state_memory_[from - shape_.n_blocks];
    }
  }
  copied_ += copies_.from.size();
  copies_.clear();
}

// The prefix and all that begin with it are not known any more.
inline void modelled_pool::forget(const tokens& prefix) {
  for (const auto& k : known_)
    if (begins_with(k.first, prefix)) removed_.insert(k.first);
  std::erase_if(known_, [&](const auto& k) { return begins_with(k.first, prefix); });
}

// Evicts what `n` more blocks need.
inline void modelled_pool::take(uint32_t n) {
  for (uint32_t free = shape_.n_blocks - n_used() - n_cached(); free < n; ++free) {
    const tokens* goes = nullptr;
    uint64_t last_use = UINT64_MAX;
    for (const auto& [prefix, k] : known_)  // of equal ones the longest
      if (!k.used &&
          (k.last_use < last_use || (k.last_use == last_use && prefix.size() > goes->size())))
        goes = &prefix, last_use = k.last_use;
    ASSERT_NE(goes, nullptr);
    const tokens prefix = *goes;
    for (const auto& k : known_)
      ASSERT_FALSE(k.first != prefix && begins_with(k.first, prefix))
          << "a parent before its child";
    forget(prefix);
  }
}

inline void modelled_pool::take_state() {
  std::size_t taken = 0;
  known* oldest = nullptr;
  for (auto& k : known_)
    if (k.second.checkpoint_use != 0) {
      ++taken;
      if (oldest == nullptr || k.second.checkpoint_use < oldest->checkpoint_use) oldest = &k.second;
    }
  for (const sequence& s : sequences_) taken += s.live;
  if (taken < shape_.n_states) return;
  ASSERT_NE(oldest, nullptr);
  oldest->checkpoint_use = 0;
}

// After the tables have changed: which table holds which block, and since when none does.
inline void modelled_pool::update_uses() {
  ++now_;
  std::ranges::fill(references_, 0u);
  for (const sequence& s : sequences_)
    for (const uint32_t b : s.t.blocks()) {
      if (b != no_block) ++references_[b];
    }
  for (auto& [prefix, k] : known_) {
    const bool used = references(k.block) != 0;
    if (k.used && !used) k.last_use = now_;
    k.used = used;
  }
  for (bool again = true; again;) {  // a used one whose parent no sequence holds
    again = false;
    for (const auto& [prefix, k] : known_) {
      if (!k.used || prefix.size() == per_block()) continue;
      const auto parent = known_.find(first_of(prefix, prefix.size() - per_block()));
      if (parent != known_.end() && parent->second.used) continue;
      forget(tokens(prefix));
      again = true;
      break;
    }
  }
}

// Why `n` blocks of the prompt were found, of which `longest` are known.
inline void modelled_pool::check_reason(const tokens& prompt, uint32_t n, uint32_t longest,
                                        miss why) const {
  if (n < longest || (longest + 1) * per_block() >= prompt.size()) {
    EXPECT_EQ(why, n < longest ? miss::state_missing : miss::none);
    return;
  }
  const tokens next = first_of(prompt, (n + 1) * per_block());
  if (why == miss::evicted) {  // by the hash
    EXPECT_TRUE(collisions_ || removed_.contains(next));
    return;
  }
  const bool others = std::ranges::any_of(known_, [&](const auto& k) {
    return k.first.size() == next.size() && begins_with(k.first, first_of(prompt, n * per_block()));
  });
  EXPECT_EQ(why, others ? miss::differs : miss::nothing_known);
}

inline bool modelled_pool::match(std::size_t i, const tokens& prompt, uint32_t blocks_at_most) {
  sequence& s = sequences_[i];
  if (s.live) return false;
  uint32_t n = 0, with_state = 0, cached = 0;  // blocks that are known
  for (; (n + 1) * per_block() < prompt.size(); ++n) {
    const auto k = known_.find(first_of(prompt, (n + 1) * per_block()));
    if (k == known_.end()) break;
    if (k->second.checkpoint_use != 0) with_state = n + 1;
  }
  const uint32_t longest = n;
  if (shape_.n_states != 0) n = with_state;
  for (std::size_t b = 1; b <= n; ++b) cached += !known_.at(first_of(prompt, b * per_block())).used;
  const uint32_t room = pool_.available();
  const auto before = pool_.stats();

  const auto found = pool_.match(s.t, prompt, blocks_at_most, copies_);
  if (!found) {
    EXPECT_TRUE(copies_.empty());
    EXPECT_EQ(pool_.stats().queried_tokens, before.queried_tokens);
    const uint32_t need = std::max(blocks_at_most, n) - n + (shape_.windows ? n : cached);
    EXPECT_TRUE(found.error() == shortage::blocks ? need > room : before.states_free == 0);
    return false;
  }
  EXPECT_EQ(found->tokens, n * per_block());
  EXPECT_EQ(pool_.stats().found_tokens - before.found_tokens, found->tokens);
  EXPECT_EQ(pool_.stats().queried_tokens - before.queried_tokens, prompt.size());
  found_ += found->tokens;
  check_reason(prompt, n, longest, found->why);
  s.is = first_of(prompt, found->tokens);
  if (shape_.n_states != 0) {
    if (n != 0) known_.at(s.is).checkpoint_use = ++now_;
    take_state();
  }
  s.live = true, s.dropped = false;
  s.at_most = std::max(blocks_at_most, n);
  run_copies();
  update_uses();
  return true;
}

inline bool modelled_pool::extend(std::size_t i, const tokens& more) {
  sequence& s = sequences_[i];
  if (!s.live || more.empty()) return false;
  const uint64_t n = s.is.size();
  const bool partial = n % per_block() != 0;
  const auto blocks = pool_.blocks_of(n + more.size()) - pool_.blocks_of(n);
  const bool within = blocks <= s.t.reserved();
  bool copied = false;
  if (within && partial) {
    const uint32_t last = s.t.blocks().back();
    copied = references(last) > 1;
    const auto own = std::ranges::find(known_, last, [](const auto& k) { return k.second.block; });
    if (!copied && own != known_.end()) forget(tokens(own->first));
  }
  if (within) take(blocks + copied);
  EXPECT_EQ(pool_.extend(s.t, more.size(), copies_), within);
  if (!within) {
    EXPECT_TRUE(copies_.empty());
    return false;
  }
  EXPECT_EQ(copies_.from.size(), copied);
  run_copies();
  for (const int32_t token : more) {  // the step
    tokens& block = memory_[s.t.blocks()[s.is.size() / per_block()]];
    block.resize(s.is.size() % per_block());
    block.push_back(token);
    s.is.push_back(token);
  }
  if (shape_.n_states != 0) state_memory_[s.t.state()] = s.is;
  update_uses();
  return true;
}

inline bool modelled_pool::reserve(std::size_t i, uint32_t blocks_at_most) {
  sequence& s = sequences_[i];
  if (!s.live) return false;
  const uint32_t has = s.t.held() + s.t.reserved();
  const bool fits = blocks_at_most <= has || blocks_at_most - has <= pool_.available();
  EXPECT_EQ(pool_.reserve(s.t, blocks_at_most), fits);
  EXPECT_EQ(s.t.held() + s.t.reserved(), fits ? std::max(has, blocks_at_most) : has);
  if (fits) s.at_most = std::max(s.at_most, blocks_at_most);
  return fits;
}

inline bool modelled_pool::publish(std::size_t i) {
  sequence& s = sequences_[i];
  if (!s.live) return false;
  const std::vector<uint32_t> before(s.t.blocks().begin(), s.t.blocks().end());
  pool_.publish(s.t, s.is);
  for (std::size_t n = 1; !s.dropped && n <= s.is.size() / per_block(); ++n) {
    const auto [k, is_new] =
        known_.try_emplace(first_of(s.is, n * per_block()), known{before[n - 1]});
    const bool keeps_own =
        !is_new && s.t.blocks()[n - 1] == before[n - 1] && k->second.block != before[n - 1];
    if (keeps_own) {  // only where all was reserved, and its own is shared
      EXPECT_EQ(pool_.available(), 0u);
      EXPECT_GT(references(before[n - 1]), 1u);
      break;
    }
    EXPECT_EQ(s.t.blocks()[n - 1], k->second.block);
  }
  update_uses();
  return true;
}

inline bool modelled_pool::fork(std::size_t from, std::size_t to, uint32_t blocks_at_most) {
  sequence &p = sequences_[from], &c = sequences_[to];
  if (!p.live || c.live) return false;
  const bool partial = p.is.size() % per_block() != 0;
  const uint32_t at_most = std::max(blocks_at_most, p.t.held());
  const uint32_t need = at_most - p.t.held() + (shape_.windows ? p.t.held() : uint32_t{partial});
  const bool fits = need <= pool_.available();
  const auto made = pool_.fork(p.t, c.t, blocks_at_most, copies_);
  if (!made) {
    EXPECT_EQ(made.error() == shortage::blocks, !fits);
    EXPECT_TRUE(c.t.blocks().empty());
    return false;
  }
  EXPECT_TRUE(fits);
  if (shape_.n_states != 0) take_state();
  c.is = p.is, c.dropped = p.dropped, c.at_most = at_most, c.live = true;
  run_copies();
  update_uses();
  return true;
}

inline bool modelled_pool::truncate(std::size_t i, uint64_t n) {
  sequence& s = sequences_[i];
  if (!s.live || n >= s.is.size()) return false;
  const uint32_t had = s.t.held() + s.t.reserved();
  bool shared = false;  // a block that goes, which gives no room then
  for (const uint32_t b : s.t.blocks()) shared |= b != no_block && references(b) > 1;
  const uint64_t left = pool_.truncate(s.t, n, copies_);
  EXPECT_LE(left, n);
  EXPECT_EQ(left, s.t.tokens());
  if (!s.dropped && shape_.n_states == 0) {
    EXPECT_LT(n - left, per_block());
  }
  if (!shared || shape_.windows) {
    EXPECT_EQ(s.t.held() + s.t.reserved(), had);
  }
  s.is.resize(left);
  s.dropped = std::ranges::count(s.t.blocks(), no_block) != 0;
  run_copies();
  if (left == 0 && shape_.n_states != 0) state_memory_[s.t.state()].clear();  // a step at 0 does
  update_uses();
  return true;
}

inline bool modelled_pool::drop_unseen(std::size_t i, uint64_t first_seen, uint64_t keep) {
  sequence& s = sequences_[i];
  if (!s.live) return false;
  const uint32_t had = s.t.held() + s.t.reserved();
  pool_.drop_unseen(s.t, first_seen, keep);
  for (std::size_t b = 0; b < s.t.blocks().size(); ++b) {
    const bool unseen = b * per_block() >= keep && (b + 1) * per_block() <= first_seen;
    if (unseen && (b + 1) * per_block() <= s.is.size()) {
      EXPECT_EQ(s.t.blocks()[b], no_block);
    }
  }
  if (shape_.windows) {
    EXPECT_EQ(s.t.held() + s.t.reserved(), std::min(had, s.at_most));
  }
  s.dropped |= std::ranges::count(s.t.blocks(), no_block) != 0;
  update_uses();
  return true;
}

inline bool modelled_pool::checkpoint(std::size_t i) {
  sequence& s = sequences_[i];
  if (!s.live) return false;
  const auto before = pool_.stats();
  const auto k = known_.find(s.is);
  const bool can = shape_.n_states != 0 && k != known_.end() && !s.t.blocks().empty() &&
                   s.t.blocks().back() == k->second.block &&
                   (k->second.checkpoint_use != 0 || before.states_free + before.states_kept > 0);
  if (!pool_.checkpoint(s.t, copies_)) {
    // A fork has not yet seen what its parent published.
    if (can) {
      EXPECT_GT(references(k->second.block), 1u);
    }
    return false;
  }
  EXPECT_TRUE(can);
  if (k->second.checkpoint_use == 0) take_state();
  k->second.checkpoint_use = ++now_;
  run_copies();
  return true;
}

inline bool modelled_pool::release(std::size_t i) {
  sequence& s = sequences_[i];
  if (!s.live) return false;
  pool_.release(s.t);
  EXPECT_TRUE(s.t.blocks().empty() && s.t.tokens() == 0 && s.t.state() == no_block);
  s.is.clear();
  s.live = false;
  update_uses();
  return true;
}

inline void modelled_pool::check() const {
  const auto stats = pool_.stats();
  ASSERT_EQ(stats.blocks_used, n_used());
  ASSERT_EQ(stats.blocks_cached, n_cached());
  ASSERT_EQ(stats.blocks_used + stats.blocks_cached + stats.blocks_free, shape_.n_blocks);
  uint32_t reserved = 0, live = 0;
  std::map<uint32_t, tokens> prefix_of;  // by block: the tokens up to its end
  std::set<uint32_t> states;
  for (const sequence& s : sequences_) {
    reserved += s.t.reserved();
    live += s.live;
    ASSERT_LE(s.t.held() + s.t.reserved(), s.at_most * uint32_t{s.live});
    ASSERT_EQ(s.t.tokens(), s.is.size());
    ASSERT_EQ(s.t.blocks().size(), pool_.blocks_of(s.is.size()));
    for (std::size_t b = 0; b < s.t.blocks().size(); ++b) {
      const uint32_t block = s.t.blocks()[b];
      if (block == no_block) continue;
      const std::size_t end = std::min(s.is.size(), (b + 1) * per_block());
      const tokens own(s.is.begin() + static_cast<std::ptrdiff_t>(b * per_block()),
                       s.is.begin() + static_cast<std::ptrdiff_t>(end));
      ASSERT_TRUE(begins_with(memory_[block], own))
          << "what is read through a table is not its own";
      const auto [other, is_new] = prefix_of.try_emplace(block, first_of(s.is, end));
      const std::size_t common = std::min(end, other->second.size());
      ASSERT_TRUE(is_new || first_of(s.is, common) == first_of(other->second, common));
    }
    if (!s.live || shape_.n_states == 0) continue;
    ASSERT_TRUE(states.insert(s.t.state()).second) << "two sequences have one state";
    if (!s.is.empty()) {
      ASSERT_EQ(state_memory_[s.t.state()], s.is);
    }
  }
  ASSERT_EQ(stats.blocks_reserved, reserved + backing());
  ASSERT_LE(stats.blocks_reserved, stats.blocks_cached + stats.blocks_free);
  ASSERT_EQ(stats.states_used, shape_.n_states == 0 ? 0 : live);
  ASSERT_EQ(stats.states_kept, std::ranges::count_if(known_, [](const auto& k) {
              return k.second.checkpoint_use != 0;
            }));
}

inline std::vector<uint64_t> modelled_pool::fingerprint() const {
  std::vector<uint64_t> out;
  const auto put = [&](const auto& list) {
    out.push_back(list.size());
    for (const auto x : list) out.push_back(static_cast<uint64_t>(x));
  };
  std::map<uint32_t, uint32_t> names;  // blocks in the order in which they are seen
  const auto name = [&](uint32_t b) {
    out.push_back(b == no_block ? b : names.try_emplace(b, uint32_t(names.size())).first->second);
  };
  for (const sequence& s : sequences_) {
    put(s.is);
    for (const uint32_t b : s.t.blocks()) name(b);
    for (const uint64_t x : {s.t.reserved(), s.at_most, uint32_t{s.live}, uint32_t{s.dropped}})
      out.push_back(x);
  }
  std::vector<uint64_t> uses;
  for (const auto& [prefix, k] : known_) uses.push_back(k.last_use);
  std::ranges::sort(uses);
  for (const auto& [prefix, k] : known_) {
    put(prefix);
    name(k.block);
    out.push_back(
        k.used ? 1000
               : static_cast<uint64_t>(std::ranges::lower_bound(uses, k.last_use) - uses.begin()));
  }
  return out;
}

}  // namespace bitnet::kv
