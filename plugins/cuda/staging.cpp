#include "staging.hpp"

#include <algorithm>
#include <cstring>

#include "bitnet/abi/host.h"
#include "cuda_device.hpp"

namespace bitnet::cuda {

staging::~staging() {
  if (!memory_) return;
  const current mine(context_);
  context_.cu.cuMemFreeHost(memory_);
}

// Allocates the pinned memory. Reports only a lost device; after any other failure uploads go
// without pinned memory.
bitnet_status staging::open(const sdk::reporter& report) {
  if (memory_ || refused_) return BITNET_OK;
  const CUresult made = context_.cu.cuMemHostAlloc(&memory_, 2 * piece, 0);
  if (made == CUDA_SUCCESS) return BITNET_OK;
  memory_ = nullptr;
  constexpr const char* call = "cuMemHostAlloc";
  if (context_.check(made, call, sdk::reporter(nullptr, "")) == BITNET_DEVICE_LOST)
    return context_.check(made, call, report);
  refused_ = true;
  log_(BITNET_LOG_INFO, context_.facts.common.name +
                            ": the system has no memory for uploads that stays in place (" +
                            context_.cu.name_of(made) + "); weights go to it the slower way");
  return BITNET_OK;
}

bitnet_status staging::send(CUdeviceptr to, const void* data, uint64_t bytes,
                            const sdk::reporter& report) {
  return context_.check(context_.cu.cuMemcpyHtoDAsync(to, data, bytes, context_.transfers),
                        "cuMemcpyHtoDAsync", report);
}

bitnet_status staging::in_pieces(CUdeviceptr to, const uint8_t* data, uint64_t bytes,
                                 const sdk::reporter& report) {
  for (uint64_t done = 0, i = 0; done < bytes; done += piece, ++i) {
    auto* half = static_cast<uint8_t*>(memory_) + i % 2 * piece;
    const uint64_t n = std::min(piece, bytes - done);
    std::memcpy(half, data + done,
                n);  // meanwhile the device reads the previous piece from the other half
    if (i != 0)
      if (bitnet_status s = context_.finish_transfers(report); sdk::failed(s)) return s;
    if (bitnet_status s = send(to + done, half, n, report); sdk::failed(s)) return s;
  }
  return context_.finish_transfers(report);
}

bitnet_status staging::upload(CUdeviceptr to, const void* data, uint64_t bytes,
                              const sdk::reporter& report) {
  if (bytes > small) {
    if (bitnet_status s = open(report); sdk::failed(s)) return s;
    if (memory_) return in_pieces(to, static_cast<const uint8_t*>(data), bytes, report);
  }
  if (bitnet_status s = send(to, data, bytes, report); sdk::failed(s)) return s;
  return context_.finish_transfers(report);
}

}  // namespace bitnet::cuda
