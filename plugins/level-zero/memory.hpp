#pragma once
// Unified shared memory: a buffer is an address, which is passed to kernels unchanged. The device
// accesses host memory in place.

#include "context.hpp"

namespace bitnet::level_zero {

class device_buffer final : public gpu::buffer {
 public:
  device_buffer(const context& c, uint64_t bytes) noexcept : context_(c), bytes_(bytes) {}
  ~device_buffer() override;
  device_buffer(const device_buffer&) = delete;
  device_buffer& operator=(const device_buffer&) = delete;

  // `transfers` is a list whose commands are complete when they are appended.
  bitnet_status create(gpu::memory_place where, ze_command_list_handle_t transfers,
                       const sdk::reporter& report);

  uint64_t size() const noexcept override { return bytes_; }
  void* mapped() const noexcept override { return is_host_ ? address_ : nullptr; }
  uint8_t* address() const noexcept { return static_cast<uint8_t*>(address_); }

 private:
  const context& context_;
  uint64_t bytes_;
  void* address_ = nullptr;
  bool is_host_ = false;
};

// The interface passes buffers as const; commands may write their contents nevertheless.
inline uint8_t* address_of(const gpu::buffer& memory) noexcept {
  return static_cast<const device_buffer&>(memory).address();
}

}  // namespace bitnet::level_zero
