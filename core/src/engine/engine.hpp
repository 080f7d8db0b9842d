#pragma once
// A loaded model: its parts, in the order in which a token goes through them. On one device it has
// one part.
//
// Owner   the model must outlive the engine.
// Threads [device] slots are called under device_mutex().

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/pack_cache.hpp"
#include "engine/part.hpp"
#include "kv/eviction.hpp"
#include "model/model.hpp"

namespace bitnet::engine {

class kv_store;

// The memory that all sessions of a model may take for keys and values. bytes 0: each session has
// its own room, as much as its context needs.
struct kv_budget {
  uint64_t bytes = 0;
  kv::eviction policy = kv::eviction::lru;
};

// A model's parts on their devices, before the weights are loaded: their sections follow one
// another from the embedding to the head. `main` is the part on the device that was requested.
struct placement {
  std::vector<std::unique_ptr<part>> parts;
  std::size_t main = 0;
};

class engine {
 public:
  using progress = part::progress;

  // `cache` may be nullptr. With `tune_now` the backend's settings are measured, even if they are
  // cached.
  static result<std::unique_ptr<engine>> open(placement where, const model::model& m,
                                              const progress& report, const pack_cache* cache,
                                              const kv_budget& budget = {}, bool tune_now = false);

  [[nodiscard]] const std::vector<std::unique_ptr<part>>& parts() const { return parts_; }
  // The part on the device that was requested.
  [[nodiscard]] const part& main() const { return *parts_[main_]; }
  [[nodiscard]] std::size_t main_index() const { return main_; }
  [[nodiscard]] const select::choice& choice() const { return main().choice(); }
  [[nodiscard]] const std::string& backend_name() const { return main().backend_name(); }
  [[nodiscard]] const model::model& model() const { return model_; }
  [[nodiscard]] std::mutex& device_mutex() const { return device_mutex_; }
  // Whether a part of the engine is on this copy of a backend.
  [[nodiscard]] bool is_on(const plugin::backend* copy) const;

  // Notes the part that failed last: the search for another engine avoids it. Any thread.
  void note_failure(std::size_t part) const { failed_part_.store(part, std::memory_order_relaxed); }
  [[nodiscard]] const part& failed_part() const {
    return *parts_[failed_part_.load(std::memory_order_relaxed)];
  }

  // Bytes that are free for keys and values now, 0 if unknown.
  [[nodiscard]] uint64_t free_memory() const;
  // Fails with BITNET_BAD_DATA if data that the weights point to was missing when it was read. No
  // system call.
  [[nodiscard]] result<void> check_read() const;

  [[nodiscard]] const kv_budget& budget() const { return budget_; }
  // Blocks that the sessions of this model share, made by the first of them; `config` says the
  // types. Under device_mutex().
  result<std::shared_ptr<kv_store>> shared_kv(bitnet_kv_config config);

 private:
  engine(placement where, const model::model& m, const kv_budget& budget);
  result<void> load(const progress& report, const pack_cache* cache, bool tune_now);

  const model::model& model_;
  const kv_budget budget_;
  std::weak_ptr<kv_store> shared_kv_;
  mutable std::mutex device_mutex_;
  const std::vector<std::unique_ptr<part>> parts_;
  const std::size_t main_;
  mutable std::atomic<std::size_t> failed_part_;
};

}  // namespace bitnet::engine
