// How the store shares blocks and states among sessions: which session it evicts for another one,
// which session has to wait, and which it never evicts. The engine has no devices: the store counts
// blocks, and no test needs their contents.
#include "engine/kv_store.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "../../engine/one_thread.hpp"
#include "../../scratch_folder.hpp"
#include "../model/small_hybrid.hpp"

namespace bitnet::engine {
namespace {

using kv::no_block;

// What a session has in a store.
struct member {
  explicit member(kv_store& of) : store(of) { store.join(held); }
  ~member() { store.leave(held); }
  member(const member&) = delete;
  member& operator=(const member&) = delete;

  // Without waiting; false if it would have to.
  [[nodiscard]] bool begin(uint64_t blocks) {
    const auto done = store.begin(held, blocks, [] { return true; });
    EXPECT_TRUE(done || done.error().status == BITNET_CANCELLED) << done.error().message;
    if (!done) return false;
    busy = true;
    held.lost = false;
    return true;
  }
  void grow(uint64_t blocks) { EXPECT_TRUE(held.spare.resize(held.table, 64 * blocks)); }
  void end() {
    store.end(held);
    busy = false;
  }
  // A turn in which its table comes to have so many blocks.
  [[nodiscard]] bool turn(uint64_t blocks) {
    if (!begin(blocks)) return false;
    grow(blocks);
    end();
    return true;
  }
  [[nodiscard]] uint64_t blocks() { return store.of(held).blocks; }

  kv_store& store;
  kv_store::holding held;
  bool busy = false;
};

class kv_holdings : public testing::Test {
 protected:
  void SetUp() override {
    const auto file =
        scratch_.write("m.gguf", tests::as_text(tests::small_model("bitnet-b1.58").build()));
    model_.emplace(test::need(model::model::load(file, {})));
    engine_ = test::need(engine::open({}, *model_, {}, nullptr, {}));
  }
  static bitnet_kv_config config(uint32_t n_blocks, uint32_t n_states = 0) {
    bitnet_kv_config out{};
    out.struct_size = sizeof out;
    out.n_blocks = n_blocks;
    out.n_states = n_states;
    return out;
  }
  std::shared_ptr<kv_store> make(uint32_t n_blocks, uint32_t n_states = 0,
                                 kv::eviction policy = kv::eviction::lru) {
    const std::lock_guard device_lock(engine_->device_mutex());
    return test::need(kv_store::make(*engine_, config(n_blocks, n_states), policy));
  }

  const test::scratch_folder scratch_;
  std::optional<model::model> model_;
  std::shared_ptr<engine> engine_;
};

TEST_F(kv_holdings, a_turn_has_what_it_needs_and_gives_the_rest_back) {
  const auto store = make(4);
  member a(*store), b(*store);
  ASSERT_TRUE(a.begin(3));
  EXPECT_EQ(a.held.spare.available(), 3U);
  a.grow(2);
  EXPECT_EQ(a.blocks(), 3U) << "two in its table, one to spare";
  a.end();
  EXPECT_EQ(a.blocks(), 2U);
  EXPECT_TRUE(b.turn(2)) << "what the turn did not use is free";
  EXPECT_FALSE(a.held.lost);
  EXPECT_TRUE(a.begin(2)) << "it has them already";
  EXPECT_EQ(a.held.spare.available(), 0U);
}

TEST_F(kv_holdings, the_policy_chooses_the_victim) {
  const struct {
    kv::eviction policy;
    std::size_t loser;
    const char* why;
  } rows[] = {{kv::eviction::lru, 2, "the third was used the longest ago"},
              {kv::eviction::fifo, 0, "the first came first"},
              {kv::eviction::lfu, 1, "the second was used least often"}};
  for (const auto& row : rows) {
    const auto store = make(3, 0, row.policy);
    member first(*store), second(*store), third(*store), comes(*store);
    const std::array all = {&first, &second, &third};
    for (member* m : {&first, &third, &third, &second, &first, &first}) ASSERT_TRUE(m->turn(1));
    ASSERT_TRUE(comes.turn(1)) << row.why;
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i]->held.lost, i == row.loser) << row.why;
      EXPECT_EQ(all[i]->held.table.empty(), i == row.loser) << row.why;
      EXPECT_EQ(store->of(all[i]->held).evictions, i == row.loser ? 1U : 0U) << row.why;
    }
    EXPECT_TRUE(all[row.loser]->turn(1)) << "it comes back";
  }
}

TEST_F(kv_holdings, a_session_that_evaluates_loses_nothing) {
  const auto store = make(2);
  member a(*store), b(*store);
  ASSERT_TRUE(a.begin(2));
  a.grow(1);
  EXPECT_FALSE(b.begin(1)) << "one is in the table, the other is for the steps to come";
  EXPECT_FALSE(a.held.lost);
  a.end();
  EXPECT_TRUE(b.turn(1)) << "the one that was not used";
  EXPECT_FALSE(a.held.lost);
  EXPECT_TRUE(b.turn(2));
  EXPECT_TRUE(a.held.lost);
}

TEST_F(kv_holdings, a_waiting_session_holds_no_blocks) {
  const auto store = make(4);
  member a(*store), b(*store), c(*store);
  ASSERT_TRUE(b.turn(1));
  ASSERT_TRUE(a.begin(2));
  EXPECT_FALSE(b.begin(3)) << "a has two of four";
  EXPECT_EQ(b.held.spare.available(), 0U);
  EXPECT_EQ(b.held.table.size(), 1U) << "what it has of tokens stays as long as it can";
  EXPECT_TRUE(c.turn(1));
  EXPECT_FALSE(b.held.lost) << "there was a free one";
  EXPECT_TRUE(c.turn(2));
  EXPECT_TRUE(b.held.lost) << "its table is taken like any other";
}

TEST_F(kv_holdings, a_waiting_session_goes_on_when_another_ends) {
  const auto store = make(2);
  member a(*store), b(*store);
  ASSERT_TRUE(a.begin(2));
  std::atomic<int> asked = 0;
  std::thread waits([&] {
    EXPECT_TRUE(store->begin(b.held, 2, [&] {
      ++asked;
      return false;
    }));
  });
  while (asked == 0) std::this_thread::yield();
  a.end();
  waits.join();
  EXPECT_EQ(b.held.spare.available(), 2U);
  EXPECT_FALSE(a.held.lost) << "it had nothing of tokens";
  b.end();
}

TEST_F(kv_holdings, a_session_has_two_states_or_none) {
  const auto store = make(8, 4);
  member a(*store), b(*store), c(*store);
  ASSERT_TRUE(c.turn(0));
  EXPECT_EQ(c.held.state, no_block) << "a turn without steps needs none";
  ASSERT_TRUE(a.turn(1) && b.turn(1));
  const std::set<uint32_t> different = {a.held.state, a.held.kept_state, b.held.state,
                                        b.held.kept_state};
  EXPECT_EQ(different, (std::set<uint32_t>{0, 1, 2, 3}));
  ASSERT_TRUE(c.turn(1)) << "there are blocks, but no states";
  EXPECT_TRUE(a.held.lost);
  EXPECT_EQ(a.held.state, no_block);
  EXPECT_EQ(a.held.kept_state, no_block);
  EXPECT_FALSE(b.held.lost);
}

TEST_F(kv_holdings, a_session_that_waits_with_no_tokens_keeps_no_state) {
  const auto store = make(8, 3);
  member a(*store), b(*store);
  ASSERT_TRUE(a.begin(1));
  EXPECT_FALSE(b.begin(1)) << "one state is free, it needs two";
  EXPECT_EQ(b.held.state, no_block);
  EXPECT_EQ(b.held.kept_state, no_block);
  a.end();
  EXPECT_TRUE(b.turn(1));
  EXPECT_TRUE(a.held.lost) << "for its state";
}

TEST_F(kv_holdings, blocks_of_a_closed_session_are_free) {
  const auto store = make(3, 2);
  {
    member a(*store);
    ASSERT_TRUE(a.begin(3));
    a.grow(2);
  }  // in the middle of a turn
  member b(*store);
  EXPECT_TRUE(b.turn(3));
  EXPECT_NE(b.held.state, no_block);
}

TEST_F(kv_holdings, are_shared_by_sessions_that_keep_them_in_the_same_types) {
  bitnet_kv_config c = config(4);
  c.dtype_k = c.dtype_v = BITNET_DTYPE_F16;
  const std::lock_guard device_lock(engine_->device_mutex());
  auto one = test::need(engine_->shared_kv(c));
  c.n_blocks = 9;  // what the first said holds
  EXPECT_EQ(test::need(engine_->shared_kv(c)), one);
  EXPECT_EQ(one->n_blocks(), 4U);
  c.dtype_v = BITNET_DTYPE_Q8_0;
  const auto other = engine_->shared_kv(c);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().status, BITNET_INVALID_ARGUMENT);
  one.reset();
  EXPECT_EQ(test::need(engine_->shared_kv(c))->n_blocks(), 9U)
      << "the first store is gone with its last session";
}

// Members that begin, grow, end and leave at random, against what the rules say in one line: a turn
// can begin when the sessions that evaluate leave enough.
class kv_histories : public kv_holdings {
 protected:
  static constexpr uint32_t n_blocks = 7;

  void step(std::mt19937& random) {
    member& m = *all_[random() % all_.size()];
    switch (random() % 4) {
      case 0:
        return begin(m, random() % (n_blocks + 1));
      case 1:
        if (m.busy) m.held.spare.resize(m.held.table, 64 * (random() % (m.blocks() + 1)));
        return;
      case 2:
        if (m.busy) m.end();
        return;
      default:
        if (random() % 8 == 0) replace(m);
    }
  }
  void check() {
    std::set<uint32_t> tables;
    uint64_t in_tables = 0, held = 0;
    for (const auto& m : all_) {
      tables.insert(m->held.table.begin(), m->held.table.end());
      in_tables += m->held.table.size();
      held += m->blocks();
      EXPECT_FALSE(m->busy && m->held.lost) << "it evaluates";
      EXPECT_FALSE(m->held.lost && m->blocks() != 0);
    }
    EXPECT_EQ(tables.size(), in_tables) << "a block is in two tables";
    EXPECT_LE(held, n_blocks);
  }

  std::vector<std::unique_ptr<member>> all_;
  std::shared_ptr<kv_store> store_;

 private:
  void begin(member& m, uint64_t need) {
    if (m.busy) return;
    uint64_t busy = 0, held = 0, lost_before = 0, lost = 0;
    for (const auto& other : all_) {
      if (other.get() == &m) continue;
      held += other->blocks();
      lost_before += store_->of(other->held).evictions;
      if (other->busy) busy += other->blocks();
    }
    const uint64_t own = m.blocks();
    ASSERT_EQ(m.begin(need), need + busy <= n_blocks) << need << " beside " << busy;
    for (const auto& other : all_)
      if (other.get() != &m) lost += store_->of(other->held).evictions;
    if (std::max(need, own) + held <= n_blocks) {
      EXPECT_EQ(lost, lost_before) << "for nothing";
    }
    EXPECT_TRUE(!m.busy || m.blocks() >= need);
  }
  void replace(member& m) {
    for (auto& one : all_)
      if (one.get() == &m) {
        one.reset();
        one = std::make_unique<member>(*store_);
        return;
      }
  }
};

TEST_F(kv_histories, give_what_the_rules_say) {
  for (const auto policy : {kv::eviction::lru, kv::eviction::fifo, kv::eviction::lfu})
    for (uint32_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(std::to_string(seed));
      store_ = make(n_blocks, 0, policy);
      for (int i = 0; i < 5; ++i) all_.push_back(std::make_unique<member>(*store_));
      std::mt19937 random(seed);
      for (int i = 0; i < 300 && !HasFailure(); ++i) {
        step(random);
        check();
      }
      all_.clear();
      member last(*store_);
      EXPECT_TRUE(last.begin(n_blocks)) << "all came back";
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace bitnet::engine
