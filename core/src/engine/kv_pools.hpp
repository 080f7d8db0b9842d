#pragma once
// KV blocks, and states, in a pool on each device of an engine. A block or a state has the same
// number in all of them.
//
// Owner   a model_runner or a kv_store, which destroys them under device_mutex().
// Threads as the contract says of the slots.

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "compute/steps.hpp"
#include "engine/engine.hpp"

namespace bitnet::engine {

class kv_pools {
 public:
  // Under device_mutex(). `config` says types and number of blocks, for all layers.
  static result<std::shared_ptr<const kv_pools>> make(const engine& e,
                                                      const bitnet_kv_config& config);

  struct pool {
    bitnet_kv_config config{};
    bool has_keys = true;                  // false: no layer of the part attends
    compute::handle<bitnet_kv_pool> made;  // nullptr: the part has no states either

    [[nodiscard]] bool has_states() const { return config.n_states != 0; }
    [[nodiscard]] uint64_t block_bytes() const;  // as exported; 0 without keys
    // The block number of a state in copies, exports and imports.
    [[nodiscard]] uint32_t as_block(uint32_t state) const { return config.n_blocks + state; }
  };
  [[nodiscard]] const pool& of_part(std::size_t p) const { return pools_[p]; }
  [[nodiscard]] const bitnet_kv_config& config() const { return config_; }  // of all layers

 private:
  explicit kv_pools(const bitnet_kv_config& config) : config_(config) {}

  const bitnet_kv_config config_;
  std::vector<pool> pools_;
};

}  // namespace bitnet::engine
