#include "forms.hpp"

#include <utility>

#include "bitnet/abi/host.h"
#include "form_check.hpp"
#include "gpu-common/ranges.hpp"

namespace bitnet::gpu {
namespace {

std::string setting(const settings& user, const char* key) {
  const auto found = user.find(key);
  return found == user.end() ? std::string() : found->second;
}

// The forms whose ids the host's list names.
forms named_forms(const std::string& list, const char* api, const forms& all) {
  forms out;
  for (const std::string& one : all)
    if (("," + list + ",").find("," + one + "." + api + ",") != std::string::npos)
      out.push_back(one);
  return out;
}

}  // namespace

bitnet_status read_switch(const settings& user, const char* key, bool& out,
                          const sdk::reporter& report) {
  const std::string value = setting(user, key);
  if (value.empty()) return BITNET_OK;
  if (value != "on" && value != "off")
    return report.fail(BITNET_UNAVAILABLE, "setting %s is '%.64s'; expected on or off", key,
                       value.c_str());
  out = value == "on";
  return BITNET_OK;
}

bitnet_status check_head_setting(const settings& user, const sdk::reporter& report) {
  const std::string head = setting(user, "head");
  if (head.empty() || head == "exact" || head == "fast" || head == "full") return BITNET_OK;
  return report.fail(BITNET_UNAVAILABLE, "setting head is '%.64s'; expected exact, fast or full",
                     head.c_str());
}

bitnet_status read_form_use(const sdk::host& services, const settings& user, const char* api,
                            const forms& all, form_use& out, const sdk::reporter& report) {
  if (bitnet_status s = read_switch(user, "checks", out.checks, report); sdk::failed(s)) return s;
  out.off = named_forms(setting(user, "disable"), api, all);
  const std::string purpose = setting(user, "purpose");
  out.bounded = purpose == "probe";
  // The child of the probe compared them, on the same driver and devices.
  if (purpose == "load" && setting(user, "probed") == "yes") out.checks = false;
  if (out.checks && !out.bounded)
    services.log(
        BITNET_LOG_INFO, api,
        "no probe compared the forms of kernels; this process does when a device is opened");
  return BITNET_OK;
}

bitnet_status device_with_forms::compare_forms(std::span<const form_trial> trials, const forms& all,
                                               const form_words& words,
                                               const sdk::reporter& report) {
  std::vector<form_fault> found;
  const bitnet_status s = check_forms(*this, trials, all, found, report);
  for (form_fault& one : found) {
    log_(BITNET_LOG_WARN, describe().name + ": " + one.form + "." + words.api + " " + one.what +
                              ", and is not used; report it with " + words.version);
    use_.off.push_back(std::move(one.form));
  }
  return s;
}

void platform_with_forms::add_device(const facts& about, const forms& lacks) {
  common_.push_back(about);
  off_.push_back(use_.off);
  leave_out(static_cast<uint32_t>(off_.size() - 1), lacks);
}

void platform_with_forms::leave_out(uint32_t index, const forms& some) {
  const std::scoped_lock guard(lock_);
  forms& off = off_[index];
  for (const std::string& one : some)
    if (!has(off, one)) off.push_back(one);
}

std::vector<kernel_alternative> platform_with_forms::alternatives(uint32_t index) const {
  std::vector<kernel_alternative> out = forms_of(index);
  std::erase_if(
      out, [off = off_of(index)](const kernel_alternative& one) { return has(off, one.name); });
  return out;
}

bitnet_status platform_with_forms::open(uint32_t index, std::unique_ptr<device>& out,
                                        const sdk::reporter& report) {
  const range here(watcher_, "open ", common_[index].name);
  form_use use = use_;
  use.off = off_of(index);
  std::unique_ptr<device_with_forms> made = make_device(index, std::move(use));
  const bitnet_status s = made->open(report);
  leave_out(index, made->off());
  if (!sdk::failed(s))
    out = std::move(made);
  else if (made->hangs())  // to give back what it has would wait without end
    static_cast<void>(made.release());
  return s;
}

}  // namespace bitnet::gpu
