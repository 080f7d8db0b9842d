#include "memory.hpp"

#include <algorithm>
#include <cstring>

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
                "%s: the system has no %llu bytes of pinned memory left (%s); use a smaller "
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

}  // namespace bitnet::rocm
