#include "queue.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "gpu-common/pace.hpp"
#include "recording.hpp"

namespace bitnet::rocm {

queue::~queue() {
  if (!stream_) return;
  const current mine(context_);
  const library& hip = context_.hip;
  hip.hipStreamSynchronize(stream_);
  for (const pending& p : pending_) hip.hipEventDestroy(p.event);
  for (hipEvent_t e : spare_) hip.hipEventDestroy(e);
  hip.hipStreamDestroy(stream_);
}

bitnet_status queue::start(const sdk::reporter& report) {
  const hipError_t made = context_.hip.hipStreamCreateWithFlags(&stream_, hipStreamNonBlocking);
  if (made != hipSuccess) stream_ = nullptr;
  return context_.check(made, "hipStreamCreateWithFlags", report);
}

bitnet_status queue::spare_event(hipEvent_t& out, const sdk::reporter& report) {
  if (spare_.empty()) {
    spare_.reserve(1);
    hipEvent_t made = nullptr;
    if (bitnet_status s =
            context_.check(context_.hip.hipEventCreateWithFlags(&made, hipEventDisableTiming),
                           "hipEventCreateWithFlags", report);
        sdk::failed(s))
      return s;
    spare_.push_back(made);
  }
  out = spare_.back();
  return BITNET_OK;
}

bitnet_status queue::submit(gpu::recording& work, uint64_t value, const sdk::reporter& report) {
  const current mine(context_);
  if (bitnet_status s = mine.check(report); sdk::failed(s)) return s;
  const std::scoped_lock held(lock_);
  if (bitnet_status s = retire(report); sdk::failed(s)) return s;
  hipEvent_t event = nullptr;
  if (bitnet_status s = spare_event(event, report); sdk::failed(s)) return s;
  auto& commands = static_cast<recording&>(work);
  pending_.push_back(
      {value, event, clock::now(), commands.took()});  // before anything runs: it may throw
  spare_.pop_back();
  // Nothing waits for what was not launched.
  const auto take_back = [&](const void*) {
    pending_.pop_back();
    context_.hip.hipEventDestroy(event);
  };
  std::unique_ptr<queue, decltype(take_back)> unfinished(this, take_back);
  if (bitnet_status s = commands.launch_on(stream_, report); sdk::failed(s)) {
    // Commands before the one that failed run, and nothing would wait for them.
    context_.hip.hipStreamSynchronize(stream_);
    return s;
  }
  if (bitnet_status s =
          context_.check(context_.hip.hipEventRecord(event, stream_), "hipEventRecord", report);
      sdk::failed(s)) {
    // What runs and cannot be waited for must not be left running.
    context_.hip.hipStreamSynchronize(stream_);
    return s;
  }
  static_cast<void>(unfinished.release());
  submitted_ = value;
  return BITNET_OK;
}

bitnet_status queue::retire(const sdk::reporter& report) {
  spare_.reserve(spare_.size() + pending_.size());
  while (!pending_.empty()) {
    const pending first = pending_.front();
    const hipError_t done = context_.hip.hipEventQuery(first.event);
    if (done == hipErrorNotReady) return BITNET_OK;
    if (done != hipSuccess) return context_.check(done, "hipEventQuery", report);
    reached_ = first.value;
    spare_.push_back(first.event);
    pending_.pop_front();
  }
  return BITNET_OK;
}

// The driver's own waiting has no end in time.
bitnet_status queue::wait(uint64_t value, uint64_t timeout_ns, const sdk::reporter& report) {
  const current mine(context_);
  if (bitnet_status s = mine.check(report); sdk::failed(s)) return s;
  const clock::time_point began = clock::now();
  clock::time_point running = began;  // until when the step was seen to
  std::shared_ptr<step_time> took;    // of a step that nothing was submitted before
  clock::time_point begun;
  for (;;) {
    uint64_t reached = 0, submitted = 0;
    {
      const std::scoped_lock held(lock_);
      if (bitnet_status s = retire(report); sdk::failed(s)) return s;
      reached = reached_;
      submitted = submitted_;
      if (running == began && !pending_.empty() && pending_.front().value == value) {
        took = pending_.front().took;
        begun = pending_.front().begun;
      }
    }
    const clock::time_point now = clock::now();
    if (reached >= value) {
      if (took) *took = gpu::pace::next(running - begun, now - begun).count();
      return BITNET_OK;
    }
    const auto waited_ns = static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(now - began).count());
    if (waited_ns >= timeout_ns || submitted < value)
      return report.fail(BITNET_TIMEOUT, "the timeline is at %llu and not at %llu%s",
                         static_cast<unsigned long long>(reached),
                         static_cast<unsigned long long>(value),
                         submitted < value ? ", which no submitted step reaches" : " in time");
    running = now;
    const gpu::pace how(gpu::pace::duration(took ? took->load() : 0));
    const auto left = static_cast<int64_t>(std::min<uint64_t>(timeout_ns - waited_ns, INT64_MAX));
    const auto nap = std::min(how.nap(now - (took ? begun : began)), gpu::pace::duration(left));
    if (nap == gpu::pace::duration::zero())
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(nap);
  }
}

bitnet_status queue::poll(uint64_t& value, const sdk::reporter& report) {
  const current mine(context_);
  if (bitnet_status s = mine.check(report); sdk::failed(s)) return s;
  const std::scoped_lock held(lock_);
  if (bitnet_status s = retire(report); sdk::failed(s)) return s;
  value = reached_;
  return BITNET_OK;
}

}  // namespace bitnet::rocm
