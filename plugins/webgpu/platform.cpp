#include "platform.hpp"

#include "device.hpp"
#include "known_answer.hpp"

namespace bitnet::webgpu {

using sdk::failed;

platform::~platform() {
  const std::scoped_lock held(runtime_.lock);
  for (const adapter& a : adapters_) calls_->AdapterRelease(a.handle);
}

bitnet_status platform::start(const sdk::reporter& report) {
  if (bitnet_status s = runtime_.start(report); failed(s)) return s;
  std::vector<std::string> refusals;
  adapters_ = find_adapters(runtime_, user_, refusals);
  std::vector<adapter> good;
  for (const adapter& a : adapters_) {
    bitnet_error why{};
    why.struct_size = sizeof why;
    const sdk::reporter aside(&why, "known answer");
    device trial(runtime_, a);
    if (!failed(trial.open(aside)) && !failed(check_answers(trial, aside))) {
      good.push_back(a);
      continue;
    }
    refusals.emplace_back(why.message);
  }
  const auto is_good = [&](const adapter& a) {
    for (const adapter& g : good)
      if (g.handle == a.handle) return true;
    return false;
  };
  {
    const std::scoped_lock held(runtime_.lock);
    for (const adapter& a : adapters_)
      if (!is_good(a)) calls_->AdapterRelease(a.handle);
  }
  adapters_ = std::move(good);
  for (const std::string& r : refusals) services_.log(BITNET_LOG_WARN, "webgpu", r);
  for (const adapter& a : adapters_) facts_.push_back(a.about);
  if (!facts_.empty()) return BITNET_OK;
  if (refusals.empty())
    return report.fail(BITNET_UNAVAILABLE,
                       "%s finds no adapter; install a driver for your GPU, or "
                       "mesa-vulkan-drivers for one in software",
                       calls_->file.c_str());
  return report.fail(BITNET_UNAVAILABLE, "%s", refusals.front().c_str());
}

bitnet_status platform::open(uint32_t index, std::unique_ptr<gpu::device>& out,
                             const sdk::reporter& report) {
  auto made = std::make_unique<device>(runtime_, adapters_[index]);
  if (bitnet_status s = made->open(report); failed(s)) return s;
  out = std::move(made);
  return BITNET_OK;
}

}  // namespace bitnet::webgpu
