#include "cuda_platform.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "cuda_device.hpp"
#include "nvtx.hpp"

namespace bitnet::cuda {
namespace {

class platform final : public gpu::platform {
 public:
  platform(std::unique_ptr<library> cu, log_function log)
      : cu_(std::move(cu)), log_(std::move(log)), watcher_(find_watcher(log_)) {}

  bool find_devices(const permitted& may, std::string& why) {
    for (device_facts& d : list_devices(*cu_, why)) {
      if (!d.refusal.empty()) {
        log_(BITNET_LOG_WARN, d.common.name + " is not used: " + d.refusal);
        continue;
      }
      d.overlaps = d.overlaps && may.overlap;
      d.warp_groups = d.warp_groups && may.warp_groups;
      d.checks = may.checks;
      d.bounded = may.bounded;
      d.patience_ns = may.patience_ns;
      forms& off = off_.emplace_back(may.off);
      if (!d.warp_groups)
        for (std::string& one : forms_by_warp_groups()) off.push_back(std::move(one));
      common_.push_back(d.common);
      found_.push_back(std::move(d));
    }
    return !found_.empty();
  }

  const std::vector<gpu::facts>& devices() const noexcept override { return common_; }

  bitnet_status open(uint32_t index, std::unique_ptr<gpu::device>& out,
                     const sdk::reporter& report) override {
    const gpu::range here(watcher_, "open ", found_[index].common.name);
    auto made = std::make_unique<device>(*cu_, found_[index], off_of(index), watcher_, log_);
    const bitnet_status s = made->open(report);
    leave_out(index, made->off());
    if (!sdk::failed(s))
      out = std::move(made);
    else if (made->hangs())  // to give back what it has would wait without end
      static_cast<void>(made.release());
    return s;
  }

  std::vector<gpu::kernel_alternative> alternatives(uint32_t index) const override {
    if (index >= found_.size()) return {};
    return alternatives_without(off_of(index), found_[index].common.precisions);
  }

 private:
  forms off_of(uint32_t index) const {
    const std::scoped_lock guard(lock_);
    return off_[index];
  }
  void leave_out(uint32_t index, const forms& some) {
    const std::scoped_lock guard(lock_);
    forms& off = off_[index];
    for (const std::string& one : some)
      if (std::find(off.begin(), off.end(), one) == off.end()) off.push_back(one);
  }

  std::unique_ptr<library> cu_;
  const log_function log_;
  gpu::watcher* const watcher_;
  std::vector<device_facts> found_;
  std::vector<gpu::facts> common_;
  mutable std::mutex lock_;
  std::vector<forms> off_;  // that each device does without
};

}  // namespace

std::unique_ptr<gpu::platform> open_platform(const char* driver, const log_function& log,
                                             std::string& why, const permitted& may) {
  std::unique_ptr<library> cu = open_library(driver, why);
  if (!cu) return nullptr;
  auto out = std::make_unique<platform>(std::move(cu), log);
  if (!out->find_devices(may, why)) return nullptr;
  return out;
}

}  // namespace bitnet::cuda
