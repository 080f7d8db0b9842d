// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// Storage for KV blocks in host memory, kept in the canonical layout, so that copy, export and
// import are plain copies.

#include <algorithm>
#include <cstring>
#include <vector>

#include "bitnet/abi/program.h"
#include "bitnet/sdk/compute/kv_storage.hpp"
#include "bitnet/sdk/guard.hpp"
#include "bitnet/sdk/handle.hpp"
#include "bitnet/sdk/received.hpp"

namespace bitnet::sdk {

class kv_pool {
 public:
  bitnet_status create(const bitnet_kv_config* config, uint32_t kv_dtypes, budget* lent,
                       const reporter& report) {
    uint64_t bytes = 0;
    if (bitnet_status s = describe(config, kv_dtypes, storage_, bytes, report); failed(s)) return s;
    memory_ = memory(bytes, lent);
    memory_.spread();
    storage_.data = memory_.data();
    return BITNET_OK;
  }

  bitnet_status copy(const uint32_t* from, const uint32_t* to, uint32_t n,
                     const reporter& report) const {
    if (bitnet_status s = check_copies(storage_, from, to, n, report); failed(s)) return s;
    for (uint32_t i = 0; i < n; ++i)
      std::memcpy(block(to[i]), block(from[i]), storage_.bytes_of(from[i]));
    return BITNET_OK;
  }

  bitnet_status write_out(const uint32_t* blocks, uint32_t n, uint8_t* out, uint64_t bytes,
                          const reporter& report) const {
    if (bitnet_status s = check_moved(storage_, blocks, n, out, bytes, false, report); failed(s))
      return s;
    for (uint32_t i = 0; i < n; ++i) {
      std::memcpy(out, block(blocks[i]), storage_.bytes_of(blocks[i]));
      out += storage_.bytes_of(blocks[i]);
    }
    return BITNET_OK;
  }

  bitnet_status read_in(const uint32_t* blocks, uint32_t n, const uint8_t* data, uint64_t bytes,
                        const reporter& report) const {
    if (bitnet_status s = check_moved(storage_, blocks, n, data, bytes, true, report); failed(s))
      return s;
    for (uint32_t i = 0; i < n; ++i) {
      std::memcpy(block(blocks[i]), data, storage_.bytes_of(blocks[i]));
      data += storage_.bytes_of(blocks[i]);
    }
    return BITNET_OK;
  }

  uint8_t* block(uint64_t index) const noexcept {
    return storage_.data + storage_.offset_of(index);
  }
  const kv_storage& storage() const noexcept { return storage_; }

 private:
  kv_storage storage_{};
  memory memory_;
};

}  // namespace bitnet::sdk
