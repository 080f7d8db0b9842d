// The pool beside its model: all short runs of a small pool, and long random runs of larger ones.

#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <unordered_set>

#include "pool_model.hpp"

namespace bitnet::kv {
namespace {

using operation = std::function<bool(modelled_pool&)>;

// Sequences that are not live are alike: what begins one takes the first of them.
std::optional<std::size_t> first_idle(modelled_pool& pool) {
  for (std::size_t i = 0; i < pool.size(); ++i)
    if (!pool.at(i).live) return i;
  return std::nullopt;
}

std::vector<operation> all_operations(std::size_t n_sequences, bool windows) {
  std::vector<operation> out;
  const auto begins = [&](auto begin) {
    out.push_back([begin](modelled_pool& p) {
      const auto idle = first_idle(p);
      return idle && begin(p, *idle);
    });
  };
  const tokens one{1, 1, 1, 1, 1}, other{1, 1, 2, 2, 1};
  begins([one](auto& p, std::size_t i) { return p.match(i, one, 2); });
  begins([one](auto& p, std::size_t i) { return p.match(i, one, 3); });
  begins([other](auto& p, std::size_t i) { return p.match(i, other, 3); });
  for (std::size_t i = 0; i < n_sequences; ++i) {
    begins([i](auto& p, std::size_t idle) { return p.fork(i, idle, 2); });
    begins([i](auto& p, std::size_t idle) { return p.fork(i, idle, 3); });
    for (const tokens& more : {tokens{1}, tokens{2}})
      out.push_back([i, more](auto& p) { return p.extend(i, more); });
    out.push_back([i](auto& p) { return p.extend(i, {1, 1, 1}) && p.publish(i); });
    if (windows)
      out.push_back(
          [i](auto& p) { return p.drop_unseen(i, std::max<size_t>(p.at(i).is.size(), 1) - 1, 0); });
    out.push_back([i](auto& p) { return p.publish(i); });
    out.push_back([i](auto& p) { return p.reserve(i, 4); });
    for (const std::size_t less : {1, 3})
      out.push_back([i, less](auto& p) {
        return p.at(i).is.size() >= less && p.truncate(i, p.at(i).is.size() - less);
      });
    out.push_back([i](auto& p) { return p.release(i); });
  }
  return out;
}

uint64_t hash_of(const std::vector<uint64_t>& numbers) {
  uint64_t out = 0;
  for (const uint64_t x : numbers) out = (out ^ x) * 0x9e3779b97f4a7c15u, out ^= out >> 29;
  return out;
}

void release_all(modelled_pool& pool) {
  for (std::size_t i = 0; i < pool.size(); ++i) pool.release(i);
  ASSERT_NO_FATAL_FAILURE(pool.check());
  EXPECT_EQ(pool.pool().stats().blocks_used, 0u);
  EXPECT_EQ(pool.pool().stats().blocks_reserved, 0u);
  EXPECT_EQ(pool.pool().available(), pool.pool().has().n_blocks);
}

// Every operation in every state that some shorter run leads to: of equal states one goes on.
void try_all_runs(const shape& s, std::size_t depth) {
  const auto operations = all_operations(3, s.windows);
  std::vector<std::vector<uint8_t>> runs{{}};
  std::unordered_set<uint64_t> seen;
  std::size_t n_runs = 0, evictions = 0, copies = 0;
  for (std::size_t length = 1; length <= depth; ++length) {
    std::vector<std::vector<uint8_t>> longer;
    for (const auto& run : runs)
      for (std::size_t o = 0; o < operations.size(); ++o) {
        modelled_pool pool(s, 3);
        for (const uint8_t earlier : run) operations[earlier](pool);
        if (!operations[o](pool) && !testing::Test::HasFailure()) continue;
        ++n_runs;
        pool.check();
        const bool is_new = seen.insert(hash_of(pool.fingerprint())).second;
        evictions += pool.pool().stats().evicted_blocks != 0;
        copies += pool.copied() != 0;
        if (is_new) {
          longer.push_back(run);
          longer.back().push_back(static_cast<uint8_t>(o));
          release_all(pool);
        }
        if (testing::Test::HasFailure()) {
          std::string text;
          for (const uint8_t earlier : run) text += std::to_string(earlier) + " ";
          FAIL() << "after the operations " << text << o;
        }
      }
    runs = std::move(longer);
  }
  std::printf("%zu runs, %zu states, %zu with evictions, %zu with copies\n", n_runs, seen.size(),
              evictions, copies);
  EXPECT_GT(evictions, 0u);
  EXPECT_GT(copies, 0u);
}

TEST(block_pool_model, all_short_runs_of_three_sequences_and_four_blocks) {
  try_all_runs({.n_blocks = 4, .tokens_per_block = 2}, 6);
}

TEST(block_pool_model, all_shorter_runs_with_windows) {
  try_all_runs({.n_blocks = 4, .windows = true, .tokens_per_block = 2}, 6);
}

uint64_t same_hash(uint64_t, std::span<const int32_t>, const hash_secret&) {
  return 42;
}

uint64_t two_hashes(uint64_t before, std::span<const int32_t> block, const hash_secret&) {
  return (before + static_cast<uint64_t>(block[0])) % 2;  // and 0, which means no tombstone
}

class random_run {
 public:
  random_run(const shape& s, hash_function hash, uint32_t seed)
      : pool_(s, 6, hash), random_(seed) {}

  void run(int n_operations) {
    for (int o = 0; o < n_operations; ++o) {
      step();
      pool_.check();
      if (testing::Test::HasFailure()) FAIL() << "operation " << o;
    }
    release_all(pool_);
    EXPECT_GT(pool_.found(), 0u);
    EXPECT_GT(pool_.pool().stats().evicted_blocks, 0u);
    EXPECT_EQ(pool_.copied() != 0, pool_.pool().has().tokens_per_block != 1);
  }

 private:
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  tokens some(uint32_t n) {  // most are alike, so that prefixes are found
    tokens out;
    for (uint32_t i = 0; i < n; ++i) out.push_back(below(12) == 0 ? 2 : 1);
    return out;
  }

  void step() {
    const std::size_t i = below(static_cast<uint32_t>(pool_.size())),
                      to = first_idle(pool_).value_or(i);
    auto& s = pool_.at(i);
    const bool windows = pool_.pool().has().windows;
    switch (below(12)) {
      case 0:
      case 1:
        pool_.match(to, some(1 + below(20)), 1 + below(7));
        return;
      case 2:
      case 3:
      case 4:
        if (windows && s.live)
          pool_.drop_unseen(i, s.is.size() - std::min<uint64_t>(4, s.is.size()), 3);
        pool_.extend(i, some(1 + below(5)));
        return;
      case 5:
      case 6:
        pool_.publish(i);
        return;
      case 7:
        pool_.fork(i, to, 1 + below(7));
        return;
      case 8:
        pool_.truncate(i, s.is.size() - std::min<uint64_t>(1 + below(6), s.is.size()));
        return;
      case 9:
        pool_.reserve(i, 1 + below(7));
        return;
      case 10:
        pool_.checkpoint(i);
        return;
      default:
        pool_.release(i);
    }
  }

  modelled_pool pool_;
  std::mt19937 random_;
};

TEST(block_pool_model, keeps_its_rules_in_long_random_runs) {
  const struct {
    shape has;
    hash_function hash;
    const char* why;
  } rows[] = {
      {{14, 0, false, 3}, chained_hash, "forks, truncation, eviction"},
      {{14, 0, true, 3}, chained_hash, "windows cut the tree where parents go first"},
      {{14, 8, false, 3}, chained_hash, "states: what is found ends at a checkpoint"},
      {{14, 5, false, 3}, chained_hash, "fewer states than sequences and checkpoints want"},
      {{14, 8, true, 3}, chained_hash, "all at once"},
      {{14, 0, false, 3}, same_hash, "all blocks collide"},
      {{14, 8, true, 3}, two_hashes, "many collide, and a hash is 0"},
      {{14, 0, false, 1}, chained_hash, "blocks of one token are never partial"},
  };
  for (const auto& row : rows)
    for (uint32_t seed = 1; seed <= 2; ++seed) {
      SCOPED_TRACE(testing::Message() << row.why << ", seed " << seed);
      random_run(row.has, row.hash, seed).run(4000);
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace bitnet::kv
