#include "platform.hpp"

#include <utility>

#include "device.hpp"

namespace bitnet::opencl {
namespace {

class platform final : public gpu::platform {
 public:
  platform(std::unique_ptr<library> cl, settings wanted) noexcept
      : cl_(std::move(cl)), settings_(std::move(wanted)) {}

  bool find_devices(std::string& why, change_traits change) {
    for (device_facts& d : list_devices(*cl_, why)) {
      if (!d.refusal.empty()) {
        settings_.log(BITNET_LOG_WARN, std::string(d.info.name) + " is not used: " + d.refusal);
        continue;
      }
      if (change) change(d.traits);
      common_.push_back(common_facts(d));
      found_.push_back(std::move(d));
    }
    return !found_.empty();
  }

  const std::vector<gpu::facts>& devices() const noexcept override { return common_; }

  bitnet_status open(uint32_t index, std::unique_ptr<gpu::device>& out,
                     const sdk::reporter& report) override {
    auto made = std::make_unique<device>(*cl_, found_[index], settings_.log, settings_.cache);
    if (bitnet_status s = made->open(report); sdk::failed(s)) return s;
    out = std::move(made);
    return BITNET_OK;
  }

 private:
  std::unique_ptr<library> cl_;
  settings settings_;
  std::vector<device_facts> found_;
  std::vector<gpu::facts> common_;
};

}  // namespace

std::unique_ptr<gpu::platform> open_platform(const char* loader, settings wanted,
                                             std::string& why) {
  return open_platform(loader, std::move(wanted), why, nullptr);
}

std::unique_ptr<gpu::platform> open_platform(const char* loader, settings wanted, std::string& why,
                                             change_traits change) {
  std::unique_ptr<library> cl = open_library(loader, why);
  if (!cl) return nullptr;
  auto out = std::make_unique<platform>(std::move(cl), std::move(wanted));
  if (!out->find_devices(why, change)) return nullptr;
  return out;
}

}  // namespace bitnet::opencl
