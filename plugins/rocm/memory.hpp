#pragma once
// Memory of the device, and of the host where it stays in place ("pinned").

#include "context.hpp"
#include "gpu-common/driver.hpp"

namespace bitnet::rocm {

class device_buffer final : public gpu::buffer {
 public:
  device_buffer(const context& c, uint64_t bytes) : context_(c), bytes_(bytes) {}
  ~device_buffer() override;
  bitnet_status create(gpu::memory_place where, const sdk::reporter& report);

  uint64_t size() const noexcept override { return bytes_; }
  void* mapped() const noexcept override { return host_; }
  // What kernels see; the host's where memory is its own.
  uint8_t* address() const noexcept { return static_cast<uint8_t*>(address_); }

 private:
  const context& context_;
  uint64_t bytes_;
  void* host_ = nullptr;  // memory_place::host only
  void* address_ = nullptr;
};

}  // namespace bitnet::rocm
