#include "platform.hpp"

#include <utility>

#include "bitnet/abi/host.h"
#include "device.hpp"

namespace bitnet::rocm {
namespace {

class platform final : public gpu::platform {
 public:
  platform(std::unique_ptr<library> hip, log_function log, bool checks)
      : hip_(std::move(hip)), log_(std::move(log)), checks_(checks) {}

  bool find_devices(const char* kfd, std::string& why) {
    for (device_facts& d : list_devices(*hip_, kfd, why)) {
      if (!d.refusal.empty()) {
        log_(BITNET_LOG_WARN, d.common.name + " is not used: " + d.refusal);
        continue;
      }
      common_.push_back(d.common);
      found_.push_back(std::move(d));
    }
    return !found_.empty();
  }

  const std::vector<gpu::facts>& devices() const noexcept override { return common_; }

  bitnet_status open(uint32_t index, std::unique_ptr<gpu::device>& out,
                     const sdk::reporter& report) override {
    auto made = std::make_unique<device>(*hip_, found_[index], log_, checks_);
    if (bitnet_status s = made->open(report); sdk::failed(s)) return s;
    out = std::move(made);
    return BITNET_OK;
  }

 private:
  std::unique_ptr<library> hip_;
  const log_function log_;
  const bool checks_;
  std::vector<device_facts> found_;
  std::vector<gpu::facts> common_;
};

}  // namespace

std::unique_ptr<gpu::platform> open_platform(const log_function& log, std::string& why, bool checks,
                                             const char* kfd) {
  std::unique_ptr<library> hip = open_library(why, kfd);
  if (!hip) return nullptr;
  auto out = std::make_unique<platform>(std::move(hip), log, checks);
  if (!out->find_devices(kfd, why)) return nullptr;
  return out;
}

}  // namespace bitnet::rocm
