#pragma once
// The devices of Level Zero in this process.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device_facts.hpp"
#include "sysman.hpp"

namespace bitnet::level_zero {

class platform final : public gpu::platform {
 public:
  // The library outlives the platform. `sysman_enabled` as in sysman.
  platform(const library& calls, bool sysman_enabled)
      : calls_(calls), sysman_(calls, sysman_enabled) {}

  // False, with `why`, if no device can be used. `warn` gets a sentence for each rejected device.
  bool start(const std::function<void(const std::string&)>& warn, std::string& why);

  const std::vector<gpu::facts>& devices() const noexcept override { return common_; }
  bitnet_status open(uint32_t index, std::unique_ptr<gpu::device>& out,
                     const sdk::reporter& report) override;

 private:
  const library& calls_;
  sysman sysman_;
  std::vector<device_facts> found_;
  std::vector<gpu::facts> common_;
};

}  // namespace bitnet::level_zero
