#include "queue.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace bitnet::webgpu {

using sdk::failed;

queue::~queue() {
  sdk::guarded(nullptr, "queue_destroy", [&](const sdk::reporter& report) {
    uint64_t last = 0;
    {
      const std::scoped_lock held(device_.on.lock);
      if (!pending_.empty()) last = pending_.back().value;
    }
    return last == 0 ? BITNET_OK : wait(last, UINT64_MAX, report);
  });
}

bitnet_status queue::submit(gpu::recording& work, uint64_t value, const sdk::reporter& report) {
  const std::scoped_lock held(device_.on.lock);
  if (bitnet_status s = advance(report); failed(s)) return s;
  auto& mine = static_cast<recording&>(work);
  pending_.push_back({value, &mine, std::make_shared<answer>()});  // first, since it may throw
  const bitnet_status s = mine.submit(pending_.back().done, report);
  if (failed(s)) pending_.pop_back();
  return s;
}

bitnet_status queue::advance(const sdk::reporter& report) {
  device_.wgpu().InstanceProcessEvents(device_.on.instance);
  while (failure_.empty() && !pending_.empty() && pending_.front().done->given) {
    const pending first = pending_.front();
    if (first.done->status != status_success) {
      failure_ = first.done->message.empty() ? "no reason given" : first.done->message;
      break;
    }
    if (bitnet_status s = first.work->finish(report); failed(s)) {
      failure_ = "its results cannot be mapped";
      break;
    }
    reached_ = first.value;
    pending_.pop_front();
  }
  if (failure_.empty() && !pending_.empty())
    if (failed(device_.health(report))) failure_ = "the device is lost";
  if (failure_.empty()) return BITNET_OK;
  pending_.clear();  // frees what they use
  return report.fail(BITNET_DEVICE_LOST, "%s: a step failed: %s; open the device again",
                     device_.name.c_str(), failure_.c_str());
}

// Processes events at growing intervals, from 1 us to 200 us.
bitnet_status queue::wait(uint64_t value, uint64_t timeout_ns, const sdk::reporter& report) {
  using std::chrono::microseconds, std::chrono::steady_clock;
  const auto begin = steady_clock::now();
  for (auto pause = microseconds(1);; pause = std::min(2 * pause, microseconds(200))) {
    {
      const std::scoped_lock held(device_.on.lock);
      if (reached_ >= value) return BITNET_OK;
      if (bitnet_status s = advance(report); failed(s)) return s;
      if (reached_ >= value) return BITNET_OK;
      const auto spent = std::chrono::nanoseconds(steady_clock::now() - begin).count();
      const bool comes = !pending_.empty() && pending_.back().value >= value;
      if (!comes || static_cast<uint64_t>(spent) >= timeout_ns)
        return gpu::report_timeline(reached_, value, comes, report);
    }
    std::this_thread::sleep_for(pause);
  }
}

bitnet_status queue::poll(uint64_t& value, const sdk::reporter& report) {
  const std::scoped_lock held(device_.on.lock);
  if (bitnet_status s = advance(report); failed(s)) return s;
  value = reached_;
  return BITNET_OK;
}

}  // namespace bitnet::webgpu
