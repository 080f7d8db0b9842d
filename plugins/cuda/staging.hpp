#pragma once
// Pinned host memory through which weights are uploaded. The device reads one half by DMA while the
// next bytes are copied into the other half. From pageable memory the driver would first copy into
// pinned memory of its own.

#include <cstdint>

#include "bitnet/sdk/guard.hpp"
#include "library.hpp"

namespace bitnet::cuda {

struct context;

class staging {
 public:
  // Bytes. gpu-common uploads 4 MiB at a time and waits for them: of the four pieces, three are
  // copied while the previous one is being transferred. Uploads of at most `small` bytes are sent
  // directly, since a further copy takes longer than it saves.
  static constexpr uint64_t piece = uint64_t{1} << 20, small = uint64_t{64} << 10;

  // `c` and `log` outlive the object.
  staging(const context& c, const log_function& log) : context_(c), log_(log) {}
  ~staging();
  staging(const staging&) = delete;
  staging& operator=(const staging&) = delete;
  // Complete when it returns; `data` is not read afterwards, even if the upload failed. The caller
  // has made the context current and makes one call at a time.
  bitnet_status upload(CUdeviceptr to, const void* data, uint64_t bytes,
                       const sdk::reporter& report);

 private:
  bitnet_status open(const sdk::reporter& report);
  bitnet_status in_pieces(CUdeviceptr to, const uint8_t* data, uint64_t bytes,
                          const sdk::reporter& report);
  bitnet_status send(CUdeviceptr to, const void* data, uint64_t bytes, const sdk::reporter& report);

  const context& context_;
  const log_function& log_;
  void* memory_ = nullptr;  // two pieces, allocated by the first upload that is not small
  bool refused_ = false;    // the allocation failed
};

}  // namespace bitnet::cuda
