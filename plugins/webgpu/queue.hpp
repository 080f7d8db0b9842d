#pragma once
// A timeline over a device's submissions: the library says when one is done, while the thread that
// waits or asks processes its events.

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
  // Takes off what is done. The runtime's lock is held.
  bitnet_status advance(const sdk::reporter& report);

  const connection& device_;
  // Under the runtime's lock:
  std::deque<pending> pending_;  // ascending
  uint64_t reached_ = 0;
  std::string failure_;  // of the first step that failed: none after it counts
};

}  // namespace bitnet::webgpu
