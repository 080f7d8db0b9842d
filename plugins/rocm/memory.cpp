#include "memory.hpp"

#include <algorithm>
#include <cstring>

#include "bitnet/abi/host.h"

namespace bitnet::rocm {

device_buffer::~device_buffer() {
  if (!address_ && !host_) return;
  const current mine(context_);
  if (host_)
    context_.hip.hipHostFree(host_);
  else
    context_.hip.hipFree(address_);
}

bitnet_status device_buffer::create(gpu::memory_place where, const sdk::reporter& report) {
  const library& hip = context_.hip;
  const current mine(context_);
  if (bitnet_status s = mine.check(report); sdk::failed(s)) return s;
  const uint64_t bytes = std::max<uint64_t>((bytes_ + 3) / 4 * 4, 4);
  if (where == gpu::memory_place::host) {
    constexpr unsigned int flags =
        hipHostMallocPortable | hipHostMallocMapped | hipHostMallocCoherent;
    const hipError_t made = hip.hipHostMalloc(&host_, bytes, flags);
    if (made != hipSuccess) host_ = nullptr;
    if (made == hipErrorOutOfMemory)
      return report.from("hip", made)
          .fail(BITNET_OUT_OF_MEMORY,
                "%s: the system has no %llu bytes for it that stay in memory (%s); use a smaller "
                "batch or a shorter context",
                context_.facts.common.name.c_str(), static_cast<unsigned long long>(bytes),
                hip.name_of(made).c_str());
    if (made != hipSuccess) return context_.check(made, "hipHostMalloc", report);
    std::memset(host_, 0, bytes);
    return context_.check(hip.hipHostGetDevicePointer(&address_, host_, 0),
                          "hipHostGetDevicePointer", report);
  }
  const hipError_t made = hip.hipMalloc(&address_, bytes);
  if (made != hipSuccess) {
    address_ = nullptr;
    return context_.check(made, "hipMalloc", report);
  }
  if (bitnet_status s =
          context_.check(hip.hipMemsetD32Async(address_, 0, bytes / 4, context_.transfers),
                         "hipMemsetD32Async", report);
      sdk::failed(s))
    return s;
  return context_.finish_transfers(report);
}

staging::~staging() {
  if (!memory_) return;
  const current mine(context_);
  context_.hip.hipHostFree(memory_);
}

// A device that is lost says so; whatever else the runtime answers, there is the direct way.
bitnet_status staging::open(const sdk::reporter& report) {
  if (memory_ || refused_) return BITNET_OK;
  const hipError_t made = context_.hip.hipHostMalloc(&memory_, 2 * piece, hipHostMallocPortable);
  if (made == hipSuccess) return BITNET_OK;
  memory_ = nullptr;
  constexpr const char* call = "hipHostMalloc";
  if (context_.check(made, call, sdk::reporter(nullptr, "")) == BITNET_DEVICE_LOST)
    return context_.check(made, call, report);
  refused_ = true;
  log_(BITNET_LOG_INFO, context_.facts.common.name +
                            ": the system has no memory for uploads that stays in place (" +
                            context_.hip.name_of(made) + "); weights go to it the slower way");
  return BITNET_OK;
}

bitnet_status staging::send(void* to, const void* data, uint64_t bytes,
                            const sdk::reporter& report) {
  return context_.check(context_.hip.hipMemcpyHtoDAsync(to, data, bytes, context_.transfers),
                        "hipMemcpyHtoDAsync", report);
}

bitnet_status staging::in_pieces(uint8_t* to, const uint8_t* data, uint64_t bytes,
                                 const sdk::reporter& report) {
  for (uint64_t done = 0, i = 0; done < bytes; done += piece, ++i) {
    auto* half = static_cast<uint8_t*>(memory_) + i % 2 * piece;
    const uint64_t n = std::min(piece, bytes - done);
    std::memcpy(half, data + done, n);  // of the other half the device fetches the piece before
    if (i != 0)
      if (bitnet_status s = context_.finish_transfers(report); sdk::failed(s)) return s;
    if (bitnet_status s = send(to + done, half, n, report); sdk::failed(s)) return s;
  }
  return context_.finish_transfers(report);
}

bitnet_status staging::upload(void* to, const void* data, uint64_t bytes,
                              const sdk::reporter& report) {
  if (bytes > small) {
    if (bitnet_status s = open(report); sdk::failed(s)) return s;
    if (memory_)
      return in_pieces(static_cast<uint8_t*>(to), static_cast<const uint8_t*>(data), bytes, report);
  }
  if (bitnet_status s = send(to, data, bytes, report); sdk::failed(s)) return s;
  return context_.finish_transfers(report);
}

}  // namespace bitnet::rocm
