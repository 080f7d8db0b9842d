#include "device.hpp"

#include "bitnet/abi/host.h"
#include "code_objects.hpp"
#include "form_trials.hpp"
#include "recording.hpp"
#include "stream.hpp"

namespace bitnet::rocm {

device::~device() {
  if (modules_.empty()) return;
  const current mine(context_);
  for (const auto& [part, loaded] : modules_) context_.hip.hipModuleUnload(loaded);
}

bitnet_status device::open(const sdk::reporter& report) {
  management_ = smi::open(context_.facts.common.pci_address);
  if (bitnet_status s = context_.open(report); sdk::failed(s)) return s;
  if (!checks()) return BITNET_OK;
  return compare_forms(form_trials(), optional_forms(), {"rocm", "the version of ROCm"}, report);
}

bitnet_status device::status(bitnet_device_status& out, const sdk::reporter& report) const {
  size_t free = 0, total = 0;
  {
    const current mine(context_);
    if (bitnet_status s = mine.check(report); sdk::failed(s)) return s;
    if (bitnet_status s =
            context_.check(context_.hip.hipMemGetInfo(&free, &total), "hipMemGetInfo", report);
        sdk::failed(s))
      return s;
  }
  out.known |= BITNET_STATUS_MEMORY;
  out.memory_total_bytes = total;
  out.memory_free_bytes = free;
  if (management_) management_->add(out);
  return BITNET_OK;
}

bitnet_status device::find_module(const std::string& part, hipModule_t& out,
                                  const sdk::reporter& report) {
  const auto known = modules_.find(part);
  if (known != modules_.end()) {
    out = known->second;
    return BITNET_OK;
  }
  std::vector<uint8_t> code = code_object(context_.facts.target, part);
  if (code.empty())
    return report.fail(BITNET_UNAVAILABLE,
                       "%s: this build has no valid code of the part %s for %s; reinstall the "
                       "rocm backend, or build it with BITNET_ROCM_TARGETS=%s",
                       context_.facts.common.name.c_str(), part.c_str(),
                       context_.facts.target.c_str(), context_.facts.target.c_str());
  images_.push_back(std::move(code));
  hipModule_t& made = modules_[part];  // before it is loaded: it may throw
  if (bitnet_status s = context_.check(context_.hip.hipModuleLoadData(&made, images_.back().data()),
                                       "hipModuleLoadData", report);
      sdk::failed(s)) {
    modules_.erase(part);
    images_.pop_back();
    return s;
  }
  out = made;
  return BITNET_OK;
}

bitnet_status device::find_function(const std::string& part, const std::string& name,
                                    hipFunction_t& out, const sdk::reporter& report) {
  hipModule_t module = nullptr;
  if (bitnet_status s = find_module(part, module, report); sdk::failed(s)) return s;
  return context_.check(context_.hip.hipModuleGetFunction(&out, module, name.c_str()),
                        "hipModuleGetFunction", report);
}

bitnet_status device::find_functions(kernel& of, const sdk::reporter& report) {
  const kernel_form& form = of.form;
  bitnet_status s = find_function(form.part, form.function, of.function, report);
  if (!sdk::failed(s) && form.joins)
    s = find_function(form.part, form.function + "_joined", of.joined, report);
  for (size_t i = 0; i < form.several.size() && !sdk::failed(s); ++i)
    if ((form.usable >> i & 1) != 0)
      s = find_function(form.several[i].part, form.several[i].function, of.several[i], report);
  return s;
}

bitnet_status device::make_kernel_without(const forms& off, bool /*bounded*/,
                                          const gpu::kernel_spec& spec,
                                          std::unique_ptr<gpu::kernel>& out,
                                          const sdk::reporter& report) {
  auto made = std::make_unique<kernel>();
  made->spec = spec;
  const char* name = context_.facts.common.name.c_str();
  if (!find_form(spec, off, made->form))
    return report.fail(BITNET_UNSUPPORTED, "%s: no form of kernel %s for groups of %u threads",
                       name, gpu::kernel_label(spec.id), spec.constants[0]);
  if (made->form.shared_bytes > context_.facts.common.capabilities.shared_memory_bytes)
    return report.fail(BITNET_UNSUPPORTED,
                       "%s: kernel %s takes %u bytes of memory of a group, and there are %u; use "
                       "the cpu backend",
                       name, made->form.function.c_str(), made->form.shared_bytes,
                       context_.facts.common.capabilities.shared_memory_bytes);
  const current mine(context_);
  if (bitnet_status s = mine.check(report); sdk::failed(s)) return s;
  if (bitnet_status s = find_functions(*made, report); sdk::failed(s)) return s;
  out = std::move(made);
  return BITNET_OK;
}

bitnet_status device::record(std::span<const gpu::command> commands, bool timed,
                             std::unique_ptr<gpu::recording>& out, const sdk::reporter& report) {
  const current mine(context_);
  if (bitnet_status s = mine.check(report); sdk::failed(s)) return s;
  auto made = std::make_unique<recording>(context_, timed);
  if (bitnet_status s = made->build(commands, report); sdk::failed(s)) return s;
  out = std::move(made);
  return BITNET_OK;
}

bitnet_status device::make_queue(std::unique_ptr<gpu::queue>& out, const sdk::reporter& report) {
  return gpu::make_event_queue<stream>(context_, out, report);
}

}  // namespace bitnet::rocm
