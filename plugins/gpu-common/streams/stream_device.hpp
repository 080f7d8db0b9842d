#pragma once
// What devices of APIs with streams have in common: memory, uploads and downloads.
//
// `Api` is the API's part: that of staging.hpp, and
//   library, device_facts  types that a context is made from
//   buffer                 is made from a context and a size, and has create(place, report) and
//                          address()
//   fetch                  begins a copy from the device on the stream of finish_transfers()

#include <cstring>
#include <memory>
#include <utility>

#include "gpu-common/forms/forms.hpp"
#include "gpu-common/streams/staging.hpp"

namespace bitnet::gpu {

template <class Api>
class stream_device : public device_with_forms {
 public:
  using buffer_type = typename Api::buffer;

  const gpu::facts& describe() const noexcept override { return context_.facts.common; }
  bitnet_status allocate(uint64_t bytes, memory_place where, std::unique_ptr<buffer>& out,
                         const sdk::reporter& report) override {
    auto made = std::make_unique<buffer_type>(context_, bytes);
    if (bitnet_status s = made->create(where, report); sdk::failed(s)) return s;
    out = std::move(made);
    return BITNET_OK;
  }
  bitnet_status upload(buffer& to, uint64_t offset, const void* data, uint64_t bytes,
                       const sdk::reporter& report) override {
    if (bytes == 0) return BITNET_OK;
    if (to.mapped()) {
      std::memcpy(static_cast<uint8_t*>(to.mapped()) + offset, data, bytes);
      return BITNET_OK;
    }
    const typename Api::current mine(context_);
    if (bitnet_status s = mine.check(report); sdk::failed(s)) return s;
    return staging_.upload(static_cast<buffer_type&>(to).address() + offset, data, bytes, report);
  }
  bitnet_status download(const buffer& from, uint64_t offset, void* data, uint64_t bytes,
                         const sdk::reporter& report) override {
    if (bytes == 0) return BITNET_OK;
    if (from.mapped()) {
      std::memcpy(data, static_cast<const uint8_t*>(from.mapped()) + offset, bytes);
      return BITNET_OK;
    }
    const typename Api::current mine(context_);
    if (bitnet_status s = mine.check(report); sdk::failed(s)) return s;
    const auto at = static_cast<const buffer_type&>(from).address() + offset;
    if (bitnet_status s = Api::fetch(context_, data, at, bytes, report); sdk::failed(s)) return s;
    return context_.finish_transfers(report);
  }

 protected:
  // `calls`, `about` and `log` outlive the device.
  stream_device(const typename Api::library& calls, const typename Api::device_facts& about,
                form_use use, const log_function& log)
      : device_with_forms(std::move(use), log), context_(calls, about), staging_(context_, log) {}

  typename Api::context context_;

 private:
  staging<Api> staging_;
};

}  // namespace bitnet::gpu
