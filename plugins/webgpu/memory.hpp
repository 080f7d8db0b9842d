#pragma once
// A buffer of the device and, if it is the host's too, a copy of it in memory of the host: WebGPU
// maps no buffer that kernels use. A submission carries over what its commands read, and what they
// wrote comes back when it is done (recording.hpp).

#include <vector>

#include "bitnet/sdk/handle.hpp"
#include "gpu-common/driver.hpp"
#include "runtime.hpp"

namespace bitnet::webgpu {

struct extent {
  uint64_t offset = 0, bytes = 0;
  uint64_t end() const noexcept { return offset + bytes; }
};

// What is in `all`, in ascending order and without overlaps.
std::vector<extent> united(std::vector<extent> all);
// What of `one` is in none of `others`.
std::vector<extent> without(const extent& one, const std::vector<extent>& others);

class memory final : public gpu::buffer {
 public:
  explicit memory(const connection& d) noexcept : device_(d) {}
  ~memory() override;
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;

  bitnet_status allocate(uint64_t bytes, gpu::memory_place where, flags usage,
                         const sdk::reporter& report);

  uint64_t size() const noexcept override { return bytes_; }
  void* mapped() const noexcept override { return copy_.data(); }
  buffer_handle handle() const noexcept { return handle_; }

  // The rest is for recordings, under the runtime's lock.

  // Carries an extent of the host's copy over; but not what running submissions write.
  void send(const extent& what) const;
  void begin_write(const extent& what) { written_.push_back(what); }
  void end_write(const extent& what, const void* data) noexcept;

 private:
  const connection& device_;
  uint64_t bytes_ = 0;
  buffer_handle handle_ = nullptr;
  sdk::memory copy_;
  std::vector<extent> written_;  // by submissions that are not done
};

// The interface hands buffers out as const, but what is written is the command's affair.
inline memory& memory_of(const gpu::buffer& b) noexcept {
  return const_cast<memory&>(static_cast<const memory&>(b));
}

}  // namespace bitnet::webgpu
