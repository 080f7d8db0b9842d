#include "queue.hpp"

#include <algorithm>

#include "recording.hpp"

namespace bitnet::level_zero {

queue::~queue() {
  std::shared_ptr<lent_event> last;
  {
    const std::scoped_lock held(lock_);
    if (!pending_.empty()) last = pending_.back().done;
  }
  if (last) context_.calls.zeEventHostSynchronize(last->handle, UINT64_MAX);
  pending_.clear();
  last.reset();
  if (list_) context_.calls.zeCommandListDestroy(list_);
}

ze_result_t queue::end_with(ze_event_handle_t done) const {
  return context_.calls.zeCommandListAppendBarrier(list_, done, 0, nullptr);
}

bitnet_status queue::submit(gpu::recording& work, uint64_t value, const sdk::reporter& report) {
  {
    const std::scoped_lock held(lock_);
    if (failure_ != ZE_RESULT_SUCCESS) return lost(report);
  }
  auto done = std::make_shared<lent_event>(events_);
  if (bitnet_status s = done->take(report); sdk::failed(s)) return s;
  std::list<pending> added;  // allocated before work is appended, since nothing may fail afterwards
  added.push_back({value, done});
  bitnet_status s = static_cast<recording&>(work).append(list_, report);
  ze_result_t ended = end_with(done->handle);
  if (ended != ZE_RESULT_SUCCESS && s == BITNET_OK)
    s = context_.fail("zeCommandListAppendBarrier", ended, report);
  if (ended != ZE_RESULT_SUCCESS) ended = end_with(done->handle);  // signals the end of all of it
  const std::scoped_lock held(lock_);
  if (s == BITNET_OK) {
    pending_.splice(pending_.end(), added);
    submitted_ = value;
    return BITNET_OK;
  }
  // A part of the submission runs. This waits until that part has ended, since its memory may be
  // freed afterwards. If it cannot wait, all later steps fail.
  const ze_result_t waited = ended == ZE_RESULT_SUCCESS
                                 ? context_.calls.zeEventHostSynchronize(done->handle, UINT64_MAX)
                                 : ended;
  if (waited != ZE_RESULT_SUCCESS) failure_ = waited;
  return s;
}

void queue::note(const pending& one, ze_result_t result) {
  if (result == ZE_RESULT_NOT_READY) return;
  if (result != ZE_RESULT_SUCCESS) {
    if (failure_ == ZE_RESULT_SUCCESS) failure_ = result;
    return;
  }
  reached_ = std::max(reached_, one.value);
  while (!pending_.empty() && pending_.front().value <= reached_) pending_.pop_front();
}

void queue::look() {
  while (!pending_.empty() && failure_ == ZE_RESULT_SUCCESS) {
    const pending first = pending_.front();
    const ze_result_t result = context_.calls.zeEventQueryStatus(first.done->handle);
    note(first, result);
    if (result != ZE_RESULT_SUCCESS) return;
  }
}

bitnet_status queue::lost(const sdk::reporter& report) const {
  return report.from("level-zero", failure_)
      .fail(BITNET_DEVICE_LOST, "%s: a step failed with %s; open the device again",
            context_.facts.about.name.c_str(), result_name(failure_).c_str());
}

bitnet_status queue::wait(uint64_t value, uint64_t timeout_ns, const sdk::reporter& report) {
  std::unique_lock held(lock_);
  look();
  if (reached_ < value && failure_ == ZE_RESULT_SUCCESS) {
    const auto it = std::find_if(pending_.begin(), pending_.end(),
                                 [&](const pending& p) { return p.value >= value; });
    if (it != pending_.end()) {
      // This copy keeps the event while the lock is released.
      const pending one{it->value, it->done};
      held.unlock();
      const ze_result_t result =
          context_.calls.zeEventHostSynchronize(one.done->handle, timeout_ns);
      held.lock();
      note(one, result);
    }
  }
  if (reached_ >= value) return BITNET_OK;
  if (failure_ != ZE_RESULT_SUCCESS) return lost(report);
  return gpu::report_timeline(reached_, value, submitted_ >= value, report);
}

bitnet_status queue::poll(uint64_t& value, const sdk::reporter& report) {
  const std::scoped_lock held(lock_);
  look();
  if (failure_ != ZE_RESULT_SUCCESS) return lost(report);
  value = reached_;
  return BITNET_OK;
}

}  // namespace bitnet::level_zero
