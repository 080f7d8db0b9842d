#pragma once
// Assigns the blocks and states of pools to sessions. A session has pools of its own, or the
// sessions of a model share them within a budget. When the budget is spent, an idle session loses
// its blocks; it evaluates its tokens again in its next turn.
//
// Threads any; one thread at a time for each holding.
// Owner   sessions share it; the last one destroys it, under device_mutex().

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.hpp"
#include "engine/engine.hpp"
#include "engine/kv_pools.hpp"
#include "kv/eviction.hpp"
#include "kv/kv_blocks.hpp"

namespace bitnet::engine {

class kv_store {
 public:
  // Under device_mutex(). `config` says types and number of blocks, for all layers.
  static result<std::shared_ptr<kv_store>> make(const engine& e, const bitnet_kv_config& config,
                                                kv::eviction policy);

  // The blocks and states of one session. Between begin() and end() only the session uses them; at
  // other times the store may take all of them.
  struct holding {
    std::vector<uint32_t> table;  // in order of position
    kv::kv_blocks spare{0};       // for the steps to come, until the turn ends
    bool lost = false;            // the store took all blocks; the session resets this
    // For a model with states: the sequence's state, and a copy of an earlier one; no_block: none.
    uint32_t state = kv::no_block, kept_state = kv::no_block;
    uint64_t evictions = 0;

   private:
    friend kv_store;
    uint64_t id_ = 0;
    bool busy_ = false;
    [[nodiscard]] bool holds() const { return blocks() != 0 || state != kv::no_block; }
    [[nodiscard]] uint64_t blocks() const {
      return spare.available() + static_cast<uint64_t>(std::ranges::count_if(
                                     table, [](uint32_t block) { return block != kv::no_block; }));
    }
  };

  void join(holding& held);
  void leave(holding& held);

  // Begins a turn, in which `held` has `need` blocks, at most n_blocks(), in its table or spare,
  // and states unless `need` is 0. Takes them from idle holdings, by the policy; waits while all
  // are busy. `stop` is polled, and ends the waiting with BITNET_CANCELLED.
  result<void> begin(holding& held, uint64_t need, const std::function<bool()>& stop);
  void end(holding& held);

  struct usage {
    uint64_t blocks, evictions;
  };
  [[nodiscard]] usage of(const holding& held);

  [[nodiscard]] const std::shared_ptr<const kv_pools>& pools() const { return pools_; }
  [[nodiscard]] const bitnet_kv_config& config() const { return pools_->config(); }
  [[nodiscard]] uint32_t n_blocks() const { return config().n_blocks; }

 private:
  kv_store(std::shared_ptr<const kv_pools> pools, kv::eviction policy);
  void take_all(holding& held);
  void take_states(holding& held);
  bool has_states(holding& held, uint64_t need);

  const std::shared_ptr<const kv_pools> pools_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  kv::kv_blocks free_;
  std::vector<uint32_t> free_states_;
  kv::eviction_order order_;
  std::vector<holding*> holdings_;
  uint64_t last_id_ = 0;
};

}  // namespace bitnet::engine
