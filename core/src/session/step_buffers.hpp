#pragma once
// The buffers that host and device share for the steps of a program, each checked as it is made.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "session/engine.hpp"

namespace bitnet::session {

class step_buffers {
 public:
  // `alignment_bytes`: that the device tells; 0 if it tells none.
  step_buffers(const bitnet_backend_v0& table, bitnet_device* device, uint32_t alignment_bytes)
      : table_(table), device_(device), alignment_bytes_(alignment_bytes) {}

  // The address of a new one, whose handle goes to `slot`.
  [[nodiscard]] result<void*> make(uint64_t bytes, bitnet_buffer*& slot);
  [[nodiscard]] std::vector<handle<bitnet_buffer>> all() && { return std::move(all_); }

 private:
  const bitnet_backend_v0& table_;
  bitnet_device* device_;
  uint32_t alignment_bytes_;
  std::vector<handle<bitnet_buffer>> all_;
  std::vector<std::pair<const void*, uint64_t>> places_;  // address, bytes
};

}  // namespace bitnet::session
