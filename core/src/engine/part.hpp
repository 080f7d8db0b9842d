#pragma once
// A part of a model on one device: the opened device, and a section of the model with the weights
// that it reads. A model on one device has one part, with all of it; a model on several has one on
// each.
//
// Owner   holds the backend alive; the model must outlive the part (weights may alias its file).
// Threads [device] slots are called under the engine's device_mutex(); open() and load() by one.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "compute/device.hpp"
#include "engine/graph.hpp"
#include "engine/limits.hpp"
#include "engine/pack_cache.hpp"
#include "model/model.hpp"
#include "select/selection.hpp"

namespace bitnet::engine {

class part {
 public:
  // done and total in bytes of weights; false stops with BITNET_CANCELLED.
  using progress = std::function<bool(uint64_t done, uint64_t total)>;

  // Opens the device, and nothing else. With `copies` no ternary weight is used in place from the
  // model file.
  static result<std::unique_ptr<part>> open(select::choice choice, const model::model& m,
                                            bool copies = false);

  // Sets the section of the part. Before load().
  void take(const model::section& what);

  // Bytes that it needs for a session beyond the file's, as the device estimates them.
  struct demand {
    uint64_t weights = 0, steps = 0, kv = 0;
    [[nodiscard]] uint64_t all() const { return weights + steps + kv; }
  };
  [[nodiscard]] result<demand> needs(const session_options& planned, const limits& most,
                                     const bitnet_kv_config& pool) const;
  // The level (BITNET_LEVEL_*) of each op of a graph of its section, as the device answers.
  [[nodiscard]] result<std::vector<uint32_t>> levels(const compute::graph& g,
                                                     const bitnet_program_options& bounds) const;
  // The model's weight that an op of such a graph reads as number `here`.
  [[nodiscard]] const model::weight& weight(uint32_t here) const;
  // Bytes that are free on the device now, by its status or its size; nullopt: unknown.
  [[nodiscard]] std::optional<uint64_t> room() const;
  // Whether its memory is the host's, of which the system can provide more than what is free.
  [[nodiscard]] bool on_host() const { return choice_.device.device_class == BITNET_DEVICE_CPU; }

  // BITNET_UNSUPPORTED, before a byte is read, if the device cannot compute the section.
  [[nodiscard]] result<void> check_support() const;
  // Uploads the weights. `scales` are released once the backend has copied them.
  result<void> load(const progress& report, const pack_cache* cache, bool tune_now,
                    model::model::scales_hold scales);
  [[nodiscard]] uint64_t weight_bytes() const;  // of its section, as load() counts them

  [[nodiscard]] const bitnet_backend_v0& table() const { return choice_.backend->table(); }
  [[nodiscard]] const std::string& backend_name() const { return choice_.backend->name(); }
  [[nodiscard]] const select::choice& choice() const { return choice_; }
  [[nodiscard]] const compute::device& device() const { return device_; }
  [[nodiscard]] bitnet_weights* weights() const { return weights_.get(); }
  [[nodiscard]] const model::section& what() const { return what_; }
  // The graph of its section, whose weights are those of this part.
  [[nodiscard]] compute::graph graph(uint32_t n_context, model::ending what) const;

  // What the device holds, in bytes of the model's weights: for each layer of the section, for the
  // embedding, and for the weights behind the layers. Known once all weights are sealed.
  struct uploaded {
    std::vector<uint64_t> layers;
    uint64_t embedding = 0, lm_head = 0;
    uint64_t mapped = 0;  // of all these: used in place, from the file
    [[nodiscard]] uint64_t all() const;
  };
  [[nodiscard]] const uploaded& has() const { return has_; }

  // Bytes of the device's memory that are free for keys and values now, 0 if unknown.
  [[nodiscard]] uint64_t free_memory() const;
  // What the device reports that it is doing. Any thread.
  [[nodiscard]] compute::activity status() const;
  // The backend's tuned settings with the measurements, "" if it has none.
  [[nodiscard]] const std::string& tuning() const { return tuning_; }
  // Fails with BITNET_BAD_DATA if data of the caches was missing when it was read. No system call.
  [[nodiscard]] result<void> check_read() const;

 private:
  part(select::choice choice, const model::model& m, bool copies);
  [[nodiscard]] std::vector<bitnet_tensor_desc> descriptions() const;
  result<void> upload(const std::vector<bitnet_tensor_desc>& descs, const progress& report,
                      model::model::scales_hold scales);
  result<void> upload_one(uint32_t index, const bitnet_weight_plan& plan,
                          const std::function<result<void>(uint64_t)>& wrote);
  void count();
  result<void> use_packed_lm_head(const pack_cache& cache);

  select::choice choice_;
  const model::model& model_;
  const bool copies_;
  model::section what_;
  std::vector<uint32_t> kept_;  // the model's weights that are here, in its order
  std::vector<uint32_t> here_;  // each model weight's index in kept_, or no_weight
  std::string tuning_;
  compute::device device_;
  std::optional<pack_cache::found> packed_head_;  // the weights may point into it
  uploaded has_;
  compute::weights weights_;  // declared after the two above, so that it is destroyed first
};

}  // namespace bitnet::engine
