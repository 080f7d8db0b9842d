#pragma once
// The stream that event_queue.hpp of gpu-common gives recordings to.

#include "device.hpp"
#include "gpu-common/streams/event_queue.hpp"
#include "recording.hpp"

namespace bitnet::rocm {

class stream {
 public:
  using event = hipEvent_t;
  using current = rocm::current;

  explicit stream(const context& c) noexcept : device(c) {}
  ~stream() {
    if (handle_ != nullptr) device.hip.hipStreamDestroy(handle_);
  }
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;

  // The device is the thread's, here and below.
  bitnet_status create(const sdk::reporter& report) {
    const hipError_t made = device.hip.hipStreamCreateWithFlags(&handle_, hipStreamNonBlocking);
    if (made != hipSuccess) handle_ = nullptr;
    return device.check(made, "hipStreamCreateWithFlags", report);
  }
  bitnet_status make(hipEvent_t& out, const sdk::reporter& report) const {
    return device.check(device.hip.hipEventCreateWithFlags(&out, hipEventDisableTiming),
                        "hipEventCreateWithFlags", report);
  }
  void destroy(hipEvent_t e) const noexcept { device.hip.hipEventDestroy(e); }
  bitnet_status record(hipEvent_t e, const sdk::reporter& report) const {
    return device.check(device.hip.hipEventRecord(e, handle_), "hipEventRecord", report);
  }
  bitnet_status is_done(hipEvent_t e, bool& out, const sdk::reporter& report) const {
    const hipError_t answer = device.hip.hipEventQuery(e);
    out = answer == hipSuccess;
    if (answer == hipErrorNotReady) return BITNET_OK;
    return device.check(answer, "hipEventQuery", report);
  }
  bitnet_status launch(gpu::recording& work, const sdk::reporter& report) const {
    const bitnet_status s = static_cast<recording&>(work).launch_on(handle_, report);
    // Commands before the one that failed run, and no event follows them.
    if (sdk::failed(s)) synchronize();
    return s;
  }
  void synchronize() const noexcept { device.hip.hipStreamSynchronize(handle_); }
  static std::shared_ptr<gpu::step_time> took(const gpu::recording& work) {
    return static_cast<const recording&>(work).took();
  }

  const context& device;

 private:
  hipStream_t handle_ = nullptr;
};

}  // namespace bitnet::rocm
