#include "queue.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "recording.hpp"

namespace bitnet::opencl {

struct queue::timeline {
  std::mutex lock;
  std::condition_variable moved;
  uint64_t reached = 0, submitted = 0;
  cl_int failure = CL_SUCCESS;  // of the first failed step; later steps do not count
  uint32_t pending = 0;         // callbacks that the driver has yet to make

  struct notice {
    std::shared_ptr<timeline> to;
    uint64_t value;
  };
  static void CL_CALLBACK completed(cl_event, cl_int status, void* data) noexcept {
    const std::unique_ptr<notice> n(static_cast<notice*>(data));
    const std::scoped_lock held(n->to->lock);
    --n->to->pending;
    if (status < 0 && n->to->failure == CL_SUCCESS) n->to->failure = status;
    if (n->to->failure == CL_SUCCESS) n->to->reached = n->value;
    n->to->moved.notify_all();
  }
};

queue::queue(context& c) : context_(c), timeline_(std::make_shared<timeline>()) {}

queue::~queue() {
  context_.cl.clFinish(context_.commands);
  std::unique_lock held(timeline_->lock);
  timeline_->moved.wait(held, [&] { return timeline_->pending == 0; });
}

bitnet_status queue::submit(gpu::recording& work, uint64_t value, const sdk::reporter& report) {
  {
    const std::scoped_lock held(timeline_->lock);
    if (timeline_->failure != CL_SUCCESS)
      return context_.fail("an earlier step", timeline_->failure, report);
  }
  cl_event done = nullptr;
  if (bitnet_status s = static_cast<recording&>(work).enqueue(&done, report); sdk::failed(s))
    return s;
  auto notice = std::make_unique<timeline::notice>(timeline::notice{timeline_, value});
  {
    const std::scoped_lock held(timeline_->lock);
    ++timeline_->pending;
    timeline_->submitted = value;
  }
  const cl_int status = context_.cl.clSetEventCallback(done, CL_COMPLETE, timeline::completed,
                                                       static_cast<void*>(notice.get()));
  if (status == CL_SUCCESS) {
    // NOLINTNEXTLINE(bugprone-unused-return-value): completed() takes it back
    (void)notice.release();
    context_.cl.clReleaseEvent(done);
    const cl_int flushed = context_.cl.clFlush(context_.commands);
    return flushed == CL_SUCCESS ? BITNET_OK : context_.fail("clFlush", flushed, report);
  }
  context_.cl.clFinish(context_.commands);
  context_.cl.clReleaseEvent(done);
  const std::scoped_lock held(timeline_->lock);
  --timeline_->pending;
  return context_.fail("clSetEventCallback", status, report);
}

bitnet_status queue::wait(uint64_t value, uint64_t timeout_ns, const sdk::reporter& report) {
  timeline& t = *timeline_;
  std::unique_lock held(t.lock);
  const auto ready = [&] {
    return t.reached >= value || t.failure != CL_SUCCESS || t.submitted < value;
  };
  // A year is practically for ever, and does not overflow the clock.
  constexpr uint64_t year_ns = uint64_t{365} * 24 * 3600 * 1'000'000'000u;
  const auto until =
      std::chrono::steady_clock::now() +
      std::chrono::nanoseconds(static_cast<int64_t>(timeout_ns < year_ns ? timeout_ns : year_ns));
  t.moved.wait_until(held, until, ready);
  if (t.reached >= value) return BITNET_OK;
  if (t.failure != CL_SUCCESS)
    return report.from("opencl", t.failure)
        .fail(BITNET_DEVICE_LOST, "%s: a step failed with %s; open the device again",
              context_.facts.info.name, status_name(t.failure).c_str());
  return gpu::report_timeline(t.reached, value, t.submitted >= value, report);
}

bitnet_status queue::poll(uint64_t& value, const sdk::reporter& report) {
  const std::scoped_lock held(timeline_->lock);
  if (timeline_->failure != CL_SUCCESS)
    return report.from("opencl", timeline_->failure)
        .fail(BITNET_DEVICE_LOST, "%s: a step failed with %s; open the device again",
              context_.facts.info.name, status_name(timeline_->failure).c_str());
  value = timeline_->reached;
  return BITNET_OK;
}

}  // namespace bitnet::opencl
