#include "engine/kv_store.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace bitnet::engine {

kv_store::kv_store(std::shared_ptr<const kv_pools> pools, kv::eviction policy)
    : pools_(std::move(pools)), free_(config().n_blocks), order_(policy) {
  for (uint32_t i = config().n_states; i > 0; --i) free_states_.push_back(i - 1);
}

result<std::shared_ptr<kv_store>> kv_store::make(const engine& e, const bitnet_kv_config& config,
                                                 kv::eviction policy) {
  auto pools = kv_pools::make(e, config);
  if (!pools) return std::unexpected(std::move(pools.error()));
  return std::shared_ptr<kv_store>(new kv_store(std::move(*pools), policy));
}

void kv_store::join(holding& held) {
  const std::lock_guard lock(mutex_);
  held.id_ = ++last_id_;
  holdings_.push_back(&held);
}

void kv_store::leave(holding& held) {
  const std::lock_guard lock(mutex_);
  take_all(held);
  std::erase(holdings_, &held);
  changed_.notify_all();
}

void kv_store::take_all(holding& held) {
  free_.take(held.spare);
  free_.drop(held.table, 0, held.table.size());
  held.table.clear();
  take_states(held);
  order_.remove(held.id_);
}

void kv_store::take_states(holding& held) {
  for (uint32_t* state : {&held.state, &held.kept_state})
    if (*state != kv::no_block) free_states_.push_back(std::exchange(*state, kv::no_block));
}

// Gives `held` free states. Returns whether it has those that a turn with `need` blocks takes.
bool kv_store::has_states(holding& held, uint64_t need) {
  if (config().n_states == 0 || need == 0) return true;
  for (uint32_t* state : {&held.state, &held.kept_state}) {
    if (*state != kv::no_block) continue;
    if (free_states_.empty()) return false;
    *state = free_states_.back();
    free_states_.pop_back();
  }
  return true;
}

result<void> kv_store::begin(holding& held, uint64_t need, const std::function<bool()>& stop) {
  std::unique_lock lock(mutex_);
  for (;;) {
    while (held.blocks() < need && held.spare.take_one(free_)) {
    }
    if (has_states(held, need) && held.blocks() >= need) break;
    const auto by_id = [&](uint64_t id) {
      return *std::ranges::find_if(holdings_, [&](const holding* o) { return o->id_ == id; });
    };
    const auto victim = order_.victim(
        [&](uint64_t id) { return id != held.id_ && !by_id(id)->busy_ && by_id(id)->holds(); });
    if (victim) {
      holding& loser = *by_id(*victim);
      take_all(loser);
      loser.lost = true;
      ++loser.evictions;
      continue;
    }
    // All other holders of blocks are busy. A session that waits must not block those that could
    // continue, so its own table may be evicted like any other.
    free_.take(held.spare);
    if (held.table.empty()) take_states(held);  // the states belong to no tokens yet
    if (stop()) return fail(BITNET_CANCELLED, "cancelled while waiting for KV blocks");
    changed_.wait_for(lock, std::chrono::milliseconds(20));
  }
  held.busy_ = true;
  if (need != 0) order_.use(held.id_);
  return {};
}

void kv_store::end(holding& held) {
  const std::lock_guard lock(mutex_);
  free_.take(held.spare);
  held.busy_ = false;
  changed_.notify_all();
}

kv_store::usage kv_store::of(const holding& held) {
  const std::lock_guard lock(mutex_);
  return {held.blocks(), held.evictions};
}

}  // namespace bitnet::engine
