#pragma once
// The queue of an API with streams and events: an event follows each submission, and the timeline
// is at the value of the last event that is done.
//
// `Stream` is the API's part, which owns one stream of a device:
//   event, current       types: an event's handle; makes the device the calling thread's while it
//                        lives, and has check(report)
//   device               what `current` and the stream are made from
//   create               the stream
//   make, destroy        an event
//   record, is_done      behind what the stream was given; sets a bool
//   launch               gives a recording to the stream. If it fails, nothing of it runs any more
//   synchronize          waits, without an end in time and without a failure
//   took                 the recording's step_time

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "gpu-common/driver.hpp"
#include "gpu-common/streams/pace.hpp"

namespace bitnet::gpu {

// Nanoseconds that the last run of a recording took, as measured by the wait for it; 0: unknown.
// Any thread.
using step_time = std::atomic<int64_t>;

template <class Stream>
class event_queue final : public queue {
 public:
  using event = typename Stream::event;
  using current = typename Stream::current;

  // The caller has made the device the thread's, and created the stream.
  explicit event_queue(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {}
  ~event_queue() override {
    const current mine(stream_->device);
    stream_->synchronize();
    for (const pending& p : pending_) stream_->destroy(p.done);
    for (const event e : spare_) stream_->destroy(e);
    stream_.reset();
  }

  bitnet_status submit(recording& work, uint64_t value, const sdk::reporter& report) override {
    const current mine(stream_->device);
    if (bitnet_status s = mine.check(report); sdk::failed(s)) return s;
    const std::scoped_lock held(lock_);
    if (bitnet_status s = retire(report); sdk::failed(s)) return s;
    event done{};
    if (bitnet_status s = spare_event(done, report); sdk::failed(s)) return s;
    pending_.push_back(
        {value, done, clock::now(), stream_->took(work)});  // before the launch: it may throw
    spare_.pop_back();
    // Removes the entry if the launch fails or throws: nothing may wait for it.
    const auto take_back = [&](const void*) {
      pending_.pop_back();
      stream_->destroy(done);
    };
    std::unique_ptr<event_queue, decltype(take_back)> unfinished(this, take_back);
    if (bitnet_status s = stream_->launch(work, report); sdk::failed(s)) return s;
    if (bitnet_status s = stream_->record(done, report); sdk::failed(s)) {
      // Without its event no call could wait for what runs, so this waits for the stream.
      stream_->synchronize();
      return s;
    }
    static_cast<void>(unfinished.release());
    submitted_ = value;
    return BITNET_OK;
  }

  // Polls with pauses, because the API's own wait has no time limit.
  bitnet_status wait(uint64_t value, uint64_t timeout_ns, const sdk::reporter& report) override {
    const current mine(stream_->device);
    if (bitnet_status s = mine.check(report); sdk::failed(s)) return s;
    const clock::time_point began = clock::now();
    clock::time_point running = began;  // when the step was last seen running
    std::shared_ptr<step_time> took;    // of a step that was the first one pending
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
        if (took) *took = pace::next(running - begun, now - begun).count();
        return BITNET_OK;
      }
      const auto waited_ns = static_cast<uint64_t>(
          std::chrono::duration_cast<std::chrono::nanoseconds>(now - began).count());
      if (waited_ns >= timeout_ns || submitted < value)
        return report_timeline(reached, value, submitted >= value, report);
      running = now;
      const pace how(pace::duration(took ? took->load() : 0));
      const auto left = static_cast<int64_t>(std::min<uint64_t>(timeout_ns - waited_ns, INT64_MAX));
      const auto nap = std::min(how.nap(now - (took ? begun : began)), pace::duration(left));
      if (nap == pace::duration::zero())
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(nap);
    }
  }

  bitnet_status poll(uint64_t& value, const sdk::reporter& report) override {
    const current mine(stream_->device);
    if (bitnet_status s = mine.check(report); sdk::failed(s)) return s;
    const std::scoped_lock held(lock_);
    if (bitnet_status s = retire(report); sdk::failed(s)) return s;
    value = reached_;
    return BITNET_OK;
  }

 private:
  using clock = std::chrono::steady_clock;
  struct pending {
    uint64_t value;
    event done;
    clock::time_point begun;
    std::shared_ptr<step_time> took;  // of the recording
  };

  // Removes finished submissions and advances `reached_`. The caller holds the lock.
  bitnet_status retire(const sdk::reporter& report) {
    spare_.reserve(spare_.size() + pending_.size());
    while (!pending_.empty()) {
      const pending& first = pending_.front();
      bool is_done = false;
      if (bitnet_status s = stream_->is_done(first.done, is_done, report); sdk::failed(s)) return s;
      if (!is_done) return BITNET_OK;
      reached_ = first.value;
      spare_.push_back(first.done);
      pending_.pop_front();
    }
    return BITNET_OK;
  }

  // Sets `out` to the last of spare_, which may be made for it.
  bitnet_status spare_event(event& out, const sdk::reporter& report) {
    if (spare_.empty()) {
      spare_.reserve(1);
      event made{};
      if (bitnet_status s = stream_->make(made, report); sdk::failed(s)) return s;
      spare_.push_back(made);
    }
    out = spare_.back();
    return BITNET_OK;
  }

  std::unique_ptr<Stream> stream_;
  std::mutex lock_;
  std::deque<pending> pending_;  // ascending
  std::vector<event> spare_;
  uint64_t reached_ = 0, submitted_ = 0;
};

// Makes a queue on a new stream of the device.
template <class Stream, class Context>
bitnet_status make_event_queue(const Context& on, std::unique_ptr<queue>& out,
                               const sdk::reporter& report) {
  const typename Stream::current mine(on);
  if (bitnet_status s = mine.check(report); sdk::failed(s)) return s;
  auto made = std::make_unique<Stream>(on);
  if (bitnet_status s = made->create(report); sdk::failed(s)) return s;
  out = std::make_unique<event_queue<Stream>>(std::move(made));
  return BITNET_OK;
}

}  // namespace bitnet::gpu
