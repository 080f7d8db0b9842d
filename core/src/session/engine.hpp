#pragma once
// A model on a device: the opened device, its copy of the weights and the graph to compile.
//
// Owner   holds the backend alive; the model must outlive the engine (weights may alias its file).
// Threads [device] slots are called under device_turn().

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "compute/device.hpp"
#include "model/model.hpp"
#include "program/graph.hpp"
#include "select/selection.hpp"
#include "session/eviction.hpp"
#include "session/pack_cache.hpp"

namespace bitnet::session {

class kv_store;

// What the sessions of a model may take together for keys and values. bytes 0: each session has its
// own room, as much as its context needs.
struct kv_budget {
  uint64_t bytes = 0;
  eviction policy = eviction::lru;
};

class engine {
 public:
  // done and total in bytes of weights; false stops with BITNET_CANCELLED.
  using progress = std::function<bool(uint64_t done, uint64_t total)>;

  // `cache` may be nullptr. With `tune_now` the backend's settings are measured, whatever is kept;
  // with `copies` no ternary weight is used where the model file has it.
  static result<std::unique_ptr<engine>> open(select::choice choice, const model::model& m,
                                              const progress& report, const pack_cache* cache,
                                              const kv_budget& budget = {}, bool tune_now = false,
                                              bool copies = false);

  [[nodiscard]] const bitnet_backend_v0& table() const { return choice_.backend->table(); }
  [[nodiscard]] const std::string& backend_name() const { return choice_.backend->name(); }
  [[nodiscard]] const select::choice& choice() const { return choice_; }
  [[nodiscard]] const compute::device& device() const { return device_; }
  [[nodiscard]] bitnet_weights* weights() const { return weights_.get(); }
  [[nodiscard]] const model::model& model() const { return model_; }
  [[nodiscard]] std::mutex& device_turn() const { return device_turn_; }

  // Bytes of the device's memory that are free for keys and values now, 0 if nothing tells.
  [[nodiscard]] uint64_t free_memory() const;

  // What the device says that it is doing. Any thread.
  [[nodiscard]] compute::activity status() const;

  // The backend's settings for this machine with what was measured, "" if it has none.
  [[nodiscard]] const std::string& tuning() const { return tuning_; }

  // All that the weights point to was there when it was read. BITNET_BAD_DATA. No system call.
  [[nodiscard]] result<void> check_read() const;

  [[nodiscard]] const kv_budget& budget() const { return budget_; }
  // Blocks that the sessions of this model share, made by the first of them; `config` says the
  // types. Under device_turn().
  result<std::shared_ptr<kv_store>> shared_kv(bitnet_kv_config config);

 private:
  engine(select::choice choice, const model::model& m, const kv_budget& budget, bool copies);
  result<void> check_support(const std::vector<bitnet_tensor_desc>& descs) const;
  result<void> upload(const std::vector<bitnet_tensor_desc>& descs, const progress& report,
                      model::model::scales_hold scales);
  result<void> upload_one(uint32_t index, const bitnet_weight_plan& plan,
                          const std::function<result<void>(uint64_t)>& wrote);
  result<void> use_packed_head(const pack_cache& cache);

  select::choice choice_;
  const model::model& model_;
  program::graph graph_;
  std::string tuning_;
  const kv_budget budget_;
  const bool copies_;
  std::weak_ptr<kv_store> shared_kv_;
  mutable std::mutex device_turn_;
  compute::device device_;
  std::optional<pack_cache::found> packed_head_;  // the weights may point into it
  uint64_t aliased_bytes_ = 0;  // of weights that are used as they lie in the mapped file
  compute::weights weights_;    // after the two above: goes first
};

}  // namespace bitnet::session
