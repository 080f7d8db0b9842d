#pragma once
// A timeline over a device's submissions. The library reports a finished submission while a thread
// that waits or polls processes its events.

#include <deque>

#include "recording.hpp"

namespace bitnet::webgpu {

class queue final : public gpu::queue {
 public:
  explicit queue(const connection& d) : device_(d) {}
  ~queue() override;
  queue(const queue&) = delete;
  queue& operator=(const queue&) = delete;

  bitnet_status submit(gpu::recording& work, uint64_t value, const sdk::reporter& report) override;
  bitnet_status wait(uint64_t value, uint64_t timeout_ns, const sdk::reporter& report) override;
  bitnet_status poll(uint64_t& value, const sdk::reporter& report) override;

 private:
  struct pending {
    uint64_t value;
    recording* work;
    std::shared_ptr<answer> done;
  };
  // Removes finished submissions. The caller holds the runtime's lock.
  bitnet_status advance(const sdk::reporter& report);

  const connection& device_;
  // Under the runtime's lock:
  std::deque<pending> pending_;  // ascending
  uint64_t reached_ = 0;
  std::string failure_;  // of the first failed step; later steps do not count
};

}  // namespace bitnet::webgpu
