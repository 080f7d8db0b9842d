#pragma once
// What all objects of a device share: the calls, and a stream for what the host brings and takes.
// Every call makes the device the thread's for itself: callers' threads are any.

#include "device_facts.hpp"
#include "library.hpp"

namespace bitnet::rocm {

struct context {
  const library& hip;
  const device_facts& facts;
  hipStream_t transfers = nullptr;

  context(const library& calls, const device_facts& device) : hip(calls), facts(device) {}
  ~context();
  context(const context&) = delete;
  context& operator=(const context&) = delete;

  bitnet_status open(const sdk::reporter& report);
  // The contract's status for what the runtime answered to `call`.
  bitnet_status check(hipError_t result, const char* call, const sdk::reporter& report) const;
  // Until what the host brings and takes is done.
  bitnet_status finish_transfers(const sdk::reporter& report) const;
};

// The device is the thread's while this lives; then the one that was the thread's before.
class current {
 public:
  explicit current(const context& c) noexcept : context_(c) {
    if (c.hip.hipGetDevice(&before_) != hipSuccess) before_ = c.facts.id;
    result_ = c.hip.hipSetDevice(c.facts.id);
  }
  ~current() {
    if (before_ != context_.facts.id) context_.hip.hipSetDevice(before_);
  }
  current(const current&) = delete;
  current& operator=(const current&) = delete;
  bool entered() const noexcept { return result_ == hipSuccess; }
  bitnet_status check(const sdk::reporter& report) const {
    return context_.check(result_, "hipSetDevice", report);
  }

 private:
  const context& context_;
  int before_ = 0;
  hipError_t result_ = hipSuccess;
};

}  // namespace bitnet::rocm
