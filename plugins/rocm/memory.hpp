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

// Pinned memory through which weights go to the device: it fetches one half by itself while the
// next bytes are copied into the other.
class staging {
 public:
  // gpu-common brings 4 MiB at a time and waits for them: of four pieces three are copied while the
  // one before is under way. What is small is not worth a copy more.
  static constexpr uint64_t piece = uint64_t{1} << 20, small = uint64_t{64} << 10;

  // `c` and `log` outlive it.
  staging(const context& c, const log_function& log) : context_(c), log_(log) {}
  ~staging();
  staging(const staging&) = delete;
  staging& operator=(const staging&) = delete;
  // Done when it returns, and `data` is not used any more even if it failed. The device is the
  // thread's. One call at a time.
  bitnet_status upload(void* to, const void* data, uint64_t bytes, const sdk::reporter& report);

 private:
  bitnet_status open(const sdk::reporter& report);
  bitnet_status in_pieces(uint8_t* to, const uint8_t* data, uint64_t bytes,
                          const sdk::reporter& report);
  bitnet_status send(void* to, const void* data, uint64_t bytes, const sdk::reporter& report);

  const context& context_;
  const log_function& log_;
  void* memory_ = nullptr;  // two pieces, from the first upload that is not small
  bool refused_ = false;    // there is none to be had
};

}  // namespace bitnet::rocm
