#pragma once
// KV blocks in device memory: for each layer its keys, then its values, each as kernels.hpp says.
// What is exported and imported is the canonical layout of the contract.

#include <vector>

#include "bitnet/sdk/interpreter/kv_pool.hpp"
#include "opened.hpp"

namespace bitnet::gpu {

class kv_pool {
 public:
  explicit kv_pool(opened& device) noexcept : device_(device) {}
  ~kv_pool() {
    device_.settle();
    const std::scoped_lock lock(device_.lock);
    buffers_.clear();
  }
  kv_pool(const kv_pool&) = delete;
  kv_pool& operator=(const kv_pool&) = delete;

  bitnet_status create(const bitnet_kv_config* config, uint32_t kv_dtypes,
                       const sdk::reporter& report);
  bitnet_status copy(const uint32_t* from, const uint32_t* to, uint32_t n,
                     const sdk::reporter& report);
  bitnet_status write_out(uint32_t block, uint8_t* out, uint64_t bytes,
                          const sdk::reporter& report);
  bitnet_status read_in(uint32_t block, const uint8_t* data, uint64_t bytes,
                        const sdk::reporter& report);

  const sdk::kv_storage& storage() const noexcept { return storage_; }
  const binding& keys(uint32_t layer) const noexcept { return places_[2 * uint64_t{layer}]; }
  const binding& values(uint32_t layer) const noexcept { return places_[2 * uint64_t{layer} + 1]; }
  uint64_t id() const noexcept { return id_; }  // no other pool of the process ever has it

 private:
  struct region {  // keys or values of a layer
    uint32_t format;
    uint64_t buffer, block_bytes, canonical_bytes;
  };
  template <class Each>
  bitnet_status each_region(uint32_t block, Each each);

  opened& device_;
  sdk::kv_storage storage_{};  // its data is nullptr
  std::vector<std::unique_ptr<buffer>> buffers_;
  std::vector<region> regions_;
  std::vector<binding> places_;  // of each region, all blocks
  uint64_t id_ = 0;
};

}  // namespace bitnet::gpu
