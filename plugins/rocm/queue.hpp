#pragma once
// A timeline over a stream: behind each submission stands an event.

#include <chrono>
#include <deque>
#include <mutex>
#include <vector>

#include "device.hpp"
#include "recording.hpp"

namespace bitnet::rocm {

class queue final : public gpu::queue {
 public:
  explicit queue(const context& c) : context_(c) {}
  ~queue() override;
  // The context is current.
  bitnet_status start(const sdk::reporter& report);

  bitnet_status submit(gpu::recording& work, uint64_t value, const sdk::reporter& report) override;
  bitnet_status wait(uint64_t value, uint64_t timeout_ns, const sdk::reporter& report) override;
  bitnet_status poll(uint64_t& value, const sdk::reporter& report) override;

 private:
  using clock = std::chrono::steady_clock;
  struct pending {
    uint64_t value;
    hipEvent_t event;
    clock::time_point begun;
    std::shared_ptr<step_time> took;  // of the recording
  };
  // Takes notice of what is done. The lock is held.
  bitnet_status retire(const sdk::reporter& report);
  bitnet_status spare_event(hipEvent_t& out, const sdk::reporter& report);

  const context& context_;
  hipStream_t stream_ = nullptr;
  std::mutex lock_;
  std::deque<pending> pending_;  // ascending
  std::vector<hipEvent_t> spare_;
  uint64_t reached_ = 0, submitted_ = 0;
};

}  // namespace bitnet::rocm
