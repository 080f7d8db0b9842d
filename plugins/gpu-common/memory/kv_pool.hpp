#pragma once
// KV blocks in device memory: for each layer its keys, then its values, as kernels.hpp defines
// them; then the states, if there are any. Export and import use the contract's canonical layout.

#include <vector>

#include "bitnet/sdk/compute/kv_storage.hpp"
#include "gpu-common/opened.hpp"

namespace bitnet::gpu {

class kv_pool {
 public:
  explicit kv_pool(opened& device) noexcept
      : device_(device), held_(device.held_bytes, device.lent) {}
  ~kv_pool() {
    if (buffers_.empty()) return;  // planned only
    device_.settle();
    const std::scoped_lock lock(device_.lock);
    buffers_.clear();
  }
  kv_pool(const kv_pool&) = delete;
  kv_pool& operator=(const kv_pool&) = delete;

  bitnet_status create(const bitnet_kv_config* config, const sdk::reporter& report);
  // Each call takes its turn on the queue, whose timeline then reaches `signal`.
  bitnet_status copy(running& queue, const uint32_t* from, const uint32_t* to, uint32_t n,
                     uint64_t signal, const sdk::reporter& report);
  bitnet_status write_out(running& queue, const uint32_t* blocks, uint32_t n, uint8_t* out,
                          uint64_t bytes, uint64_t signal, const sdk::reporter& report);
  bitnet_status read_in(running& queue, const uint32_t* blocks, uint32_t n, const uint8_t* data,
                        uint64_t bytes, uint64_t signal, const sdk::reporter& report);

  const sdk::kv_storage& storage() const noexcept { return storage_; }
  const binding& keys(uint32_t layer) const noexcept { return places_[2 * uint64_t{layer}]; }
  const binding& values(uint32_t layer) const noexcept { return places_[2 * uint64_t{layer} + 1]; }
  // All states, one after the other. Call it only if the pool has states.
  const binding& states() const noexcept { return places_.back(); }
  // Bytes of a block and of a state on the device.
  uint64_t block_bytes() const noexcept { return bytes_of(0); }
  uint64_t state_bytes() const noexcept {
    return storage_.n_states == 0 ? 0 : bytes_of(storage_.n_blocks);
  }

  // Lays out the pool: the sizes of its buffers. Allocates nothing.
  bitnet_status plan(const bitnet_kv_config* config, std::vector<uint64_t>& sizes,
                     const sdk::reporter& report);

 private:
  struct region {  // keys or values of a layer, or the states
    uint32_t format;
    uint64_t buffer;
    uint64_t bytes, canonical_bytes;  // of a block or a state
    uint64_t k, rows;                 // of the matrix that a block or state of the region is
  };
  enum class direction : uint8_t { out, in };
  bitnet_status add(const region& made, uint64_t n, std::vector<uint64_t>& sizes, const char* what,
                    const char* instead, const sdk::reporter& report);
  // Calls each(region number, offset in its buffer) for the regions of block i, or state i -
  // n_blocks.
  template <class Each>
  void each_part(uint64_t i, Each each) const;
  uint64_t bytes_of(uint64_t i) const noexcept;
  uint64_t bytes_of(const uint32_t* blocks, uint32_t n) const noexcept;
  // Copies between blocks and a staging buffer that holds them one after the other.
  std::vector<command> moves(const uint32_t* blocks, uint32_t n, const buffer& staging,
                             direction way) const;
  // Calls each(region, staged bytes, canonical bytes) for all of n blocks.
  template <class Each>
  void each_staged(const uint32_t* blocks, uint32_t n, Each each) const;
  bitnet_status start(running& queue, const std::vector<command>& commands, transfer t,
                      const sdk::reporter& report);

  opened& device_;
  sdk::kv_storage storage_{};  // its data is nullptr
  holding held_;
  std::vector<std::unique_ptr<buffer>> buffers_;
  std::vector<region> regions_;
  std::vector<binding> places_;  // of each region, all blocks or states
};

}  // namespace bitnet::gpu
