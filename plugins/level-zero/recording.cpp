#include "recording.hpp"

#include <algorithm>
#include <string>

#include "forms.hpp"
#include "memory.hpp"

namespace bitnet::level_zero {
namespace {

std::string function_name(gpu::kernel_id id) {
  return std::string("bitnet_") + gpu::row_of(id).name;
}

}  // namespace

compiled_kernel::~compiled_kernel() {
  if (handle_) context_.calls.zeModuleDestroy(handle_);
}

bitnet_status compiled_kernel::compile(const sdk::reporter& report) {
  const form* const code = form_of(spec);
  if (!code)
    return report.fail(BITNET_UNSUPPORTED,
                       "%s: no form of kernel %s for the constants %u %u %u %u %u; use another "
                       "backend",
                       context_.facts.about.name.c_str(), gpu::kernel_label(spec.id),
                       spec.constants[0], spec.constants[1], spec.constants[2], spec.constants[3],
                       spec.constants[4]);
  const void* values[] = {&spec.constants[code->loose]};
  const ze_module_constants_t constants{1, &specialised_constant, values};
  ze_module_desc_t wanted{};
  wanted.stype = ZE_STRUCTURE_TYPE_MODULE_DESC;
  wanted.format = ZE_MODULE_FORMAT_IL_SPIRV;
  wanted.inputSize = static_cast<size_t>(code->end - code->begin);
  wanted.pInputModule = code->begin;
  wanted.pBuildFlags = "";
  wanted.pConstants = code->specialised ? &constants : nullptr;
  ze_module_build_log_handle_t log = nullptr;
  const ze_result_t made = context_.calls.zeModuleCreate(context_.handle, context_.facts.handle,
                                                         &wanted, &handle_, &log);
  if (made != ZE_RESULT_SUCCESS) handle_ = nullptr;
  const bitnet_status out = made == ZE_RESULT_SUCCESS ? BITNET_OK : refused(made, log, report);
  if (log) context_.calls.zeModuleBuildLogDestroy(log);
  return out;
}

bitnet_status compiled_kernel::refused(ze_result_t result, ze_module_build_log_handle_t log,
                                       const sdk::reporter& report) const {
  if (result != ZE_RESULT_ERROR_MODULE_BUILD_FAILURE)
    return context_.fail("zeModuleCreate", result, report);
  constexpr size_t most = 300;  // bytes of the log that fit a message
  std::string said;
  size_t bytes = 0;
  if (log && context_.calls.zeModuleBuildLogGetString(log, &bytes, nullptr) == ZE_RESULT_SUCCESS &&
      bytes != 0 && bytes < (size_t{1} << 24)) {
    said.resize(bytes);
    if (context_.calls.zeModuleBuildLogGetString(log, &bytes, said.data()) != ZE_RESULT_SUCCESS)
      said.clear();
    said.resize(std::min({said.find('\0'), said.size(), most}));
  }
  return report.from("level-zero", result)
      .fail(BITNET_UNAVAILABLE,
            "%s: the driver cannot compile kernel %s: %s; its compiler's words are '%s'; update "
            "the driver",
            context_.facts.about.name.c_str(), gpu::row_of(spec.id).name,
            result_name(result).c_str(), said.c_str());
}

recording::~recording() {
  for (const step& s : steps_)
    if (s.kernel) context_.calls.zeKernelDestroy(s.kernel);
}

bitnet_status recording::add(const gpu::command& one, const sdk::reporter& report) {
  step& s = steps_.emplace_back();  // freed with the recording from here on
  s.after = one.after;
  if (one.run) {
    if (bitnet_status r = add_kernel(s, one, report); sdk::failed(r)) return r;
  } else {
    s.from = address_of(*one.bindings[0].memory);
    s.to = address_of(*one.bindings[1].memory);
    s.copies = one.copies;
  }
  const size_t timed = one.run ? 1 : s.copies.size();
  for (size_t i = 0; clocks_ && i < timed; ++i) {
    s.clocks.push_back(std::make_unique<lent_event>(*clocks_));
    if (bitnet_status r = s.clocks.back()->take(report); sdk::failed(r)) return r;
  }
  return BITNET_OK;
}

bitnet_status recording::add_kernel(step& s, const gpu::command& one, const sdk::reporter& report) {
  const library& calls = context_.calls;
  const auto& code = static_cast<const compiled_kernel&>(*one.run);
  const std::string name = function_name(code.spec.id);
  ze_kernel_desc_t wanted{};
  wanted.stype = ZE_STRUCTURE_TYPE_KERNEL_DESC;
  wanted.pKernelName = name.c_str();
  if (const ze_result_t r = calls.zeKernelCreate(code.handle(), &wanted, &s.kernel);
      r != ZE_RESULT_SUCCESS) {
    s.kernel = nullptr;
    return context_.fail("zeKernelCreate", r, report);
  }
  if (const ze_result_t r = calls.zeKernelSetGroupSize(s.kernel, code.spec.constants[0], 1, 1);
      r != ZE_RESULT_SUCCESS)
    return context_.fail("zeKernelSetGroupSize", r, report);
  ze_result_t status = ZE_RESULT_SUCCESS;
  uint32_t index = 0;
  const auto set = [&](size_t bytes, const void* value) {
    if (status == ZE_RESULT_SUCCESS)
      status = calls.zeKernelSetArgumentValue(s.kernel, index++, bytes, value);
  };
  for (const gpu::binding& b : one.bindings) {
    void* const address = address_of(*b.memory);
    const uint64_t first_word = b.offset / 4;
    set(sizeof address, static_cast<const void*>(&address));
    set(sizeof first_word, &first_word);
  }
  set(one.params.size() * sizeof(uint32_t), one.params.data());
  if (status != ZE_RESULT_SUCCESS) return context_.fail("zeKernelSetArgumentValue", status, report);
  s.groups = {one.groups_x, one.groups_y, 1};
  return BITNET_OK;
}

bitnet_status recording::append(ze_command_list_handle_t list, const sdk::reporter& report) {
  ran_ = false;
  bool first = true;
  for (step& s : steps_) {
    // Commands of a list run concurrently. The first one waits for earlier submissions.
    if (s.after || first)
      if (const ze_result_t r =
              context_.calls.zeCommandListAppendBarrier(list, nullptr, 0, nullptr);
          r != ZE_RESULT_SUCCESS)
        return context_.fail("zeCommandListAppendBarrier", r, report);
    first = false;
    if (bitnet_status r = append_step(s, list, report); sdk::failed(r)) return r;
  }
  ran_ = true;
  return BITNET_OK;
}

bitnet_status recording::append_step(step& s, ze_command_list_handle_t list,
                                     const sdk::reporter& report) {
  const library& calls = context_.calls;
  for (const auto& clock : s.clocks)
    if (const ze_result_t r = calls.zeEventHostReset(clock->handle); r != ZE_RESULT_SUCCESS)
      return context_.fail("zeEventHostReset", r, report);
  const auto clock_of = [&](size_t i) {
    return i < s.clocks.size() ? s.clocks[i]->handle : nullptr;
  };
  if (s.kernel) {
    const ze_result_t r =
        calls.zeCommandListAppendLaunchKernel(list, s.kernel, &s.groups, clock_of(0), 0, nullptr);
    if (r == ZE_RESULT_SUCCESS) return BITNET_OK;
    return context_.fail("zeCommandListAppendLaunchKernel", r, report);
  }
  for (size_t i = 0; i < s.copies.size(); ++i) {
    const gpu::copy_range& c = s.copies[i];
    const ze_result_t r = calls.zeCommandListAppendMemoryCopy(list, s.to + c.to, s.from + c.from,
                                                              c.bytes, clock_of(i), 0, nullptr);
    if (r != ZE_RESULT_SUCCESS) return context_.fail("zeCommandListAppendMemoryCopy", r, report);
  }
  return BITNET_OK;
}

bool recording::times(std::span<uint64_t> out) const noexcept {
  if (!clocks_ || !ran_ || out.size() < steps_.size()) return false;
  for (size_t i = 0; i < steps_.size(); ++i) {
    double ticks = 0;
    for (const auto& clock : steps_[i].clocks) {
      ze_kernel_timestamp_result_t at{};
      if (context_.calls.zeEventQueryKernelTimestamp(clock->handle, &at) != ZE_RESULT_SUCCESS)
        return false;
      // The clock may have wrapped between the two.
      ticks += static_cast<double>((at.context.kernelEnd - at.context.kernelStart) &
                                   context_.facts.tick_mask);
    }
    out[i] = static_cast<uint64_t>(ticks * context_.facts.tick_ns);
  }
  return true;
}

}  // namespace bitnet::level_zero
