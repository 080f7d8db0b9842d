#include "cuda_platform.hpp"

#include <utility>

#include "cuda_device.hpp"
#include "nvtx.hpp"

namespace bitnet::cuda {
namespace {

class platform final : public gpu::platform_with_forms {
 public:
  platform(std::unique_ptr<library> cu, const log_function& log, const gpu::form_use& use)
      : platform_with_forms(use, log, find_watcher(log)), cu_(std::move(cu)) {}

  bool find_devices(const permitted& may, std::string& why) {
    for (device_facts& d : list_devices(*cu_, why)) {
      if (!d.refusal.empty()) {
        log_(BITNET_LOG_WARN, d.common.name + " is not used: " + d.refusal);
        continue;
      }
      d.overlaps = d.overlaps && may.overlap;
      d.warp_groups = d.warp_groups && may.warp_groups;
      forms lacks = forms_without_heads(d.common.capabilities.rounded_heads);
      if (!d.warp_groups)
        for (std::string& one : forms_by_warp_groups()) lacks.push_back(std::move(one));
      if (!d.many_doubles)
        for (std::string& one : forms_by_doubles()) lacks.push_back(std::move(one));
      add_device(d.common, lacks);
      found_.push_back(std::move(d));
    }
    return !found_.empty();
  }
  uint32_t rounded_products(uint32_t index) const override {
    return found_[index].common.capabilities.precisions & rounded_products_without(off_of(index));
  }
  uint32_t rounded_heads(uint32_t index) const override {
    return found_[index].common.capabilities.rounded_heads & rounded_heads_without(off_of(index));
  }

 private:
  std::vector<gpu::kernel_alternative> forms_of(uint32_t index) const override {
    return alternatives_for(found_[index].common.capabilities.precisions);
  }
  std::unique_ptr<gpu::device_with_forms> make_device(uint32_t index, gpu::form_use use) override {
    return std::make_unique<device>(*cu_, found_[index], std::move(use), watcher_, log_);
  }

  std::unique_ptr<library> cu_;
  std::vector<device_facts> found_;
};

}  // namespace

std::unique_ptr<gpu::platform> open_platform(const char* driver, const log_function& log,
                                             std::string& why, const permitted& may) {
  std::unique_ptr<library> cu = open_library(driver, why);
  if (!cu) return nullptr;
  auto out = std::make_unique<platform>(std::move(cu), log, may.use);
  if (!out->find_devices(may, why)) return nullptr;
  return out;
}

}  // namespace bitnet::cuda
