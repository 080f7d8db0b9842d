#pragma once
// A buffer of the device and, for host buffers, a copy in host memory: WebGPU maps no buffer that
// kernels use. A submission first sends the host bytes that its commands read, and returns the
// bytes that they wrote when it is done (recording.hpp).

#include <vector>

#include "bitnet/sdk/handle.hpp"
#include "gpu-common/driver.hpp"
#include "runtime.hpp"

namespace bitnet::webgpu {

struct extent {
  uint64_t offset = 0, bytes = 0;
  uint64_t end() const noexcept { return offset + bytes; }
};

// The union of `all`, in ascending order and without overlaps.
std::vector<extent> united(std::vector<extent> all);
// The parts of `one` that are in none of `others`.
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

  // The members below are for recordings, under the runtime's lock.

  // Sends an extent of the host's copy to the device, except parts that running submissions write.
  void send(const extent& what) const;
  void begin_write(const extent& what) { written_.push_back(what); }
  void end_write(const extent& what, const void* data) noexcept;

 private:
  const connection& device_;
  uint64_t bytes_ = 0;
  buffer_handle handle_ = nullptr;
  sdk::memory copy_;
  std::vector<extent> written_;  // by unfinished submissions
};

// The interface passes buffers as const; commands may write their contents nevertheless.
inline memory& memory_of(const gpu::buffer& b) noexcept {
  return const_cast<memory&>(static_cast<const memory&>(b));
}

}  // namespace bitnet::webgpu
