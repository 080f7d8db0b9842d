#pragma once
// Forms: kernels that another kernel of the same backend can replace, with the same bits wherever
// the form rounds nothing (docs/adr/0081). A driver that has some derives from the two classes
// here. Its device then compares the forms in the child of a probe, and its platform lists those
// that are used.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu-common/backend.hpp"
#include "gpu-common/driver.hpp"

namespace bitnet::gpu {

// Names of forms.
using forms = std::vector<std::string>;
inline bool has(const forms& some, std::string_view one) {
  return std::find(some.begin(), some.end(), one) != some.end();
}

// Which forms a process uses, and whether it compares them.
struct form_use {
  bool checks = true;    // forms are compared when a device is opened
  bool bounded = false;  // every kernel gives up waiting for a barrier
  forms off = {};        // forms that are not used
  // Time limit of a form that is compared. A form may also take eight times as long as the kernel
  // that it is compared with; that kernel has three times this limit.
  uint64_t patience_ns = 10'000'000'000;
};

// Reads "checks" ("on" or "off"), "disable", "purpose" and "probed". `all`: the driver's forms,
// whose ids are "<form>.<api>".
bitnet_status read_form_use(const sdk::host& services, const settings& user, const char* api,
                            const forms& all, form_use& out, const sdk::reporter& report);
// Reads a setting that is "on" or "off" and does not change `out` if it is absent.
bitnet_status read_switch(const settings& user, const char* key, bool& out,
                          const sdk::reporter& report);
// Checks the setting "head" of backends that have the two-stage head.
bitnet_status check_head_setting(const settings& user, const sdk::reporter& report);

struct form_trial;  // form_check.hpp

class device_with_forms : public device {
 public:
  // `log` outlives the device.
  device_with_forms(form_use use, const log_function& log) : log_(log), use_(std::move(use)) {}
  virtual bitnet_status open(const sdk::reporter& report) = 0;

  // Forms that the device does without, with those that open() found wrong.
  const forms& off() const noexcept { return use_.off; }
  uint64_t patience_ns() const noexcept { return use_.patience_ns; }
  // Work that never ends uses the device's memory, so that the device must not be destroyed.
  bool hangs() const noexcept { return hangs_; }
  void hang() noexcept { hangs_ = true; }

  bitnet_status make_kernel(const kernel_spec& spec, std::unique_ptr<kernel>& out,
                            const sdk::reporter& report) override {
    return make_kernel_without(use_.off, use_.bounded, spec, out, report);
  }
  // Makes a kernel that uses none of the forms in `off` and, if `bounded`, gives up waiting for a
  // barrier.
  virtual bitnet_status make_kernel_without(const forms& off, bool bounded, const kernel_spec& spec,
                                            std::unique_ptr<kernel>& out,
                                            const sdk::reporter& report) = 0;

 protected:
  bool checks() const noexcept { return use_.checks; }
  // Words of the warning that names a wrong form: its id ends in the API's name, and a report needs
  // the version of the API's driver.
  struct form_words {
    const char *api, *version;
  };
  // Computes the trials and adds forms with wrong bits to off(). Called by open(), when nothing
  // uses the device yet.
  bitnet_status compare_forms(std::span<const form_trial> trials, const forms& all,
                              const form_words& words, const sdk::reporter& report);

  const log_function& log_;

 private:
  form_use use_;
  bool hangs_ = false;
};

class platform_with_forms : public platform {
 public:
  const std::vector<facts>& devices() const noexcept override { return common_; }
  std::vector<kernel_alternative> alternatives(uint32_t index) const override;
  bitnet_status open(uint32_t index, std::unique_ptr<device>& out,
                     const sdk::reporter& report) override;

 protected:
  // `watcher` may be null.
  platform_with_forms(form_use use, log_function log, gpu::watcher* watcher)
      : log_(std::move(log)), watcher_(watcher), use_(std::move(use)) {}
  // `lacks`: the forms that the device does not have.
  void add_device(const facts& about, const forms& lacks);
  // The forms that a device with all of them has.
  virtual std::vector<kernel_alternative> forms_of(uint32_t index) const = 0;
  virtual std::unique_ptr<device_with_forms> make_device(uint32_t index, form_use use) = 0;

  // The forms that a device does without.
  forms off_of(uint32_t index) const {
    const std::scoped_lock guard(lock_);
    return off_[index];
  }

  const log_function log_;
  gpu::watcher* const watcher_;

 private:
  void leave_out(uint32_t index, const forms& some);

  const form_use use_;
  std::vector<facts> common_;
  mutable std::mutex lock_;
  std::vector<forms> off_;  // that each device does without
};

}  // namespace bitnet::gpu
