#pragma once
// The stream that event_queue.hpp of gpu-common gives recordings to.

#include "cuda_device.hpp"
#include "gpu-common/streams/event_queue.hpp"
#include "recording.hpp"

namespace bitnet::cuda {

class stream {
 public:
  using event = CUevent;
  using current = cuda::current;

  explicit stream(const context& c) noexcept : device(c) {}
  ~stream() {
    if (handle_ != nullptr) device.cu.cuStreamDestroy(handle_);
  }
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;

  // The context is current, here and below.
  bitnet_status create(const sdk::reporter& report) {
    const CUresult made = device.cu.cuStreamCreate(&handle_, CU_STREAM_NON_BLOCKING);
    if (made != CUDA_SUCCESS) handle_ = nullptr;
    return device.check(made, "cuStreamCreate", report);
  }
  bitnet_status make(CUevent& out, const sdk::reporter& report) const {
    return device.check(device.cu.cuEventCreate(&out, CU_EVENT_DISABLE_TIMING), "cuEventCreate",
                        report);
  }
  void destroy(CUevent e) const noexcept { device.cu.cuEventDestroy(e); }
  bitnet_status record(CUevent e, const sdk::reporter& report) const {
    return device.check(device.cu.cuEventRecord(e, handle_), "cuEventRecord", report);
  }
  bitnet_status is_done(CUevent e, bool& out, const sdk::reporter& report) const {
    const CUresult answer = device.cu.cuEventQuery(e);
    out = answer == CUDA_SUCCESS;
    if (answer == CUDA_ERROR_NOT_READY) return BITNET_OK;
    return device.check(answer, "cuEventQuery", report);
  }
  // One graph: it is launched whole or not at all.
  bitnet_status launch(gpu::recording& work, const sdk::reporter& report) const {
    return static_cast<recording&>(work).launch_on(handle_, report);
  }
  void synchronize() const noexcept { device.cu.cuStreamSynchronize(handle_); }
  static std::shared_ptr<gpu::step_time> took(const gpu::recording& work) {
    return static_cast<const recording&>(work).took();
  }

  const context& device;

 private:
  CUstream handle_ = nullptr;
};

}  // namespace bitnet::cuda
