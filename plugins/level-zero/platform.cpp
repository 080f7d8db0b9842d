#include "platform.hpp"

#include "device.hpp"

namespace bitnet::level_zero {

bool platform::start(const std::function<void(const std::string&)>& warn, std::string& why) {
  for (device_facts& d : list_devices(calls_, why)) {
    if (!d.refusal.empty()) {
      warn(d.about.name + " is not used: " + d.refusal);
      continue;
    }
    common_.push_back(d.about);
    found_.push_back(std::move(d));
  }
  return !found_.empty();
}

bitnet_status platform::open(uint32_t index, std::unique_ptr<gpu::device>& out,
                             const sdk::reporter& report) {
  auto made = std::make_unique<device>(calls_, found_[index], sysman_);
  if (bitnet_status s = made->open(report); sdk::failed(s)) return s;
  out = std::move(made);
  return BITNET_OK;
}

}  // namespace bitnet::level_zero
