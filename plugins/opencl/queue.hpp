#pragma once
// A timeline over the device's commands. The driver reports a finished command from a thread of its
// own, so a wait does not hold the device's lock and can time out.

#include <memory>

#include "device.hpp"

namespace bitnet::opencl {

class queue final : public gpu::queue {
 public:
  explicit queue(context& c);
  ~queue() override;

  bitnet_status submit(gpu::recording& work, uint64_t value, const sdk::reporter& report) override;
  bitnet_status wait(uint64_t value, uint64_t timeout_ns, const sdk::reporter& report) override;
  bitnet_status poll(uint64_t& value, const sdk::reporter& report) override;

 private:
  struct timeline;  // shared with the driver while callbacks are pending
  context& context_;
  std::shared_ptr<timeline> timeline_;
};

}  // namespace bitnet::opencl
