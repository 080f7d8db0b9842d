#include "platform.hpp"

#include <utility>

#include "bitnet/abi/host.h"
#include "code_objects.hpp"
#include "device.hpp"

namespace bitnet::rocm {
namespace {

class platform final : public gpu::platform_with_forms {
 public:
  platform(std::unique_ptr<library> hip, const log_function& log, const gpu::form_use& use)
      : platform_with_forms(use, log, nullptr), hip_(std::move(hip)) {}

  bool find_devices(const char* kfd, std::string& why) {
    for (device_facts& d : list_devices(*hip_, kfd, why)) {
      if (!d.refusal.empty()) {
        log_(BITNET_LOG_WARN, d.common.name + " is not used: " + d.refusal);
        continue;
      }
      add_device(d.common, has_code(d.target, matrix_part) ? forms() : matrix_forms());
      found_.push_back(std::move(d));
    }
    return !found_.empty();
  }

 private:
  std::vector<gpu::kernel_alternative> forms_of(uint32_t) const override {
    return rocm::alternatives();
  }
  std::unique_ptr<gpu::device_with_forms> make_device(uint32_t index, gpu::form_use use) override {
    return std::make_unique<device>(*hip_, found_[index], std::move(use), log_);
  }

  std::unique_ptr<library> hip_;
  std::vector<device_facts> found_;
};

}  // namespace

std::unique_ptr<gpu::platform> open_platform(const log_function& log, std::string& why,
                                             const gpu::form_use& use, const char* kfd) {
  std::unique_ptr<library> hip = open_library(why, kfd);
  if (!hip) return nullptr;
  auto out = std::make_unique<platform>(std::move(hip), log, use);
  if (!out->find_devices(kfd, why)) return nullptr;
  return out;
}

}  // namespace bitnet::rocm
