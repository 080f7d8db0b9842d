#pragma once
// Pinned host memory through which weights are uploaded. The device reads one half by DMA while the
// next bytes are copied into the other half. From pageable memory a driver would first copy into
// pinned memory of its own.
//
// `Api` is the API's part:
//   context, current  types: what a device's objects share, with facts, check() and
//                     finish_transfers(); makes the device the calling thread's while it lives
//   result, address   types of what a call answers, 0 if it succeeded, and of device memory
//   allocate_pinned   its call's name is in `pinned_call`
//   free_pinned
//   name_of           a result's name
//   send              begins a copy to the device on the stream that finish_transfers() waits for

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "bitnet/abi/host.h"
#include "bitnet/sdk/guard.hpp"
#include "gpu-common/driver.hpp"

namespace bitnet::gpu {

// Bytes. gpu-common uploads 4 MiB at a time and waits for them: of the four pieces, three are
// copied while the previous one is being transferred. Uploads of at most small_upload bytes are
// sent directly, since a further copy takes longer than it saves.
inline constexpr uint64_t staging_piece = uint64_t{1} << 20, small_upload = uint64_t{64} << 10;

template <class Api>
class staging {
 public:
  using context = typename Api::context;
  using address = typename Api::address;

  // `c` and `log` outlive the object.
  staging(const context& c, const log_function& log) : context_(c), log_(log) {}
  ~staging() {
    if (!memory_) return;
    const typename Api::current mine(context_);
    Api::free_pinned(context_, memory_);
  }
  staging(const staging&) = delete;
  staging& operator=(const staging&) = delete;
  // Complete when it returns; `data` is not read afterwards, even if the upload failed. The caller
  // has made the device the thread's and makes one call at a time.
  bitnet_status upload(address to, const void* data, uint64_t bytes, const sdk::reporter& report) {
    if (bytes > small_upload) {
      if (bitnet_status s = open(report); sdk::failed(s)) return s;
      if (memory_) return in_pieces(to, static_cast<const uint8_t*>(data), bytes, report);
    }
    if (bitnet_status s = Api::send(context_, to, data, bytes, report); sdk::failed(s)) return s;
    return context_.finish_transfers(report);
  }

 private:
  // Allocates the pinned memory. Reports only a lost device; after any other failure uploads go
  // without pinned memory.
  bitnet_status open(const sdk::reporter& report) {
    if (memory_ || refused_) return BITNET_OK;
    const typename Api::result made = Api::allocate_pinned(context_, memory_, 2 * staging_piece);
    if (made == typename Api::result{}) return BITNET_OK;
    memory_ = nullptr;
    if (context_.check(made, Api::pinned_call, sdk::reporter(nullptr, "")) == BITNET_DEVICE_LOST)
      return context_.check(made, Api::pinned_call, report);
    refused_ = true;
    log_(BITNET_LOG_INFO, context_.facts.common.name +
                              ": the system has no pinned memory for uploads (" +
                              Api::name_of(context_, made) + "); weights are uploaded more slowly");
    return BITNET_OK;
  }

  bitnet_status in_pieces(address to, const uint8_t* data, uint64_t bytes,
                          const sdk::reporter& report) {
    for (uint64_t done = 0, i = 0; done < bytes; done += staging_piece, ++i) {
      auto* half = static_cast<uint8_t*>(memory_) + i % 2 * staging_piece;
      const uint64_t n = std::min(staging_piece, bytes - done);
      // Meanwhile the device reads the previous piece from the other half.
      std::memcpy(half, data + done, n);
      if (i != 0)
        if (bitnet_status s = context_.finish_transfers(report); sdk::failed(s)) return s;
      if (bitnet_status s = Api::send(context_, to + done, half, n, report); sdk::failed(s))
        return s;
    }
    return context_.finish_transfers(report);
  }

  const context& context_;
  const log_function& log_;
  void* memory_ = nullptr;  // two pieces, allocated by the first upload that is not small
  bool refused_ = false;    // the allocation failed
};

}  // namespace bitnet::gpu
