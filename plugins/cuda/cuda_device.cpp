#include "cuda_device.hpp"

#include <algorithm>
#include <cstring>

#include "bitnet/abi/host.h"
#include "form_trials.hpp"
#include "host_memory.hpp"
#include "recording.hpp"
#include "stream.hpp"

namespace bitnet::cuda {
namespace {

struct meaning {
  bitnet_status code;
  const char* advice;
};

meaning meaning_of(CUresult result) noexcept {
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return {BITNET_OUT_OF_DEVICE_MEMORY,
              "use a smaller model, a shorter context or another device"};
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case CUDA_ERROR_INVALID_IMAGE:
      return {BITNET_UNAVAILABLE,
              "update the driver, or use a build for this device's architecture"};
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
      return {BITNET_UNAVAILABLE,
              "another process uses the device exclusively; end it, or use another device"};
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_UNKNOWN:
      return {BITNET_DEVICE_LOST, "open the device again, in a new process if that fails"};
    default:
      return {BITNET_INTERNAL, "report it with the driver's version"};
  }
}

}  // namespace

context::~context() {
  if (transfers) {
    const current mine(*this);
    cu.cuStreamDestroy(transfers);
  }
  if (handle) cu.cuDevicePrimaryCtxRelease(facts.id);
}

bitnet_status context::check(CUresult result, const char* call, const sdk::reporter& report) const {
  if (result == CUDA_SUCCESS) return BITNET_OK;
  const meaning m = meaning_of(result);
  return report.from("cuda", static_cast<int>(result))
      .fail(m.code, "%s: %s failed with %s; %s", facts.common.name.c_str(), call,
            cu.name_of(result).c_str(), m.advice);
}

bitnet_status context::open(const sdk::reporter& report) {
  CUresult made = cu.cuDevicePrimaryCtxRetain(&handle, facts.id);
  if (made != CUDA_SUCCESS) {
    handle = nullptr;
    if (!facts.exclusive) return check(made, "cuDevicePrimaryCtxRetain", report);
    return report.from("cuda", static_cast<int>(made))
        .fail(BITNET_UNAVAILABLE,
              "%s: its compute mode allows one process, and another one uses it (%s); end that, or "
              "allow more with nvidia-smi -c DEFAULT",
              facts.common.name.c_str(), cu.name_of(made).c_str());
  }
  const current mine(*this);
  if (bitnet_status s = mine.check(report); sdk::failed(s)) return s;
  made = cu.cuStreamCreate(&transfers, CU_STREAM_NON_BLOCKING);
  if (made != CUDA_SUCCESS) transfers = nullptr;
  return check(made, "cuStreamCreate", report);
}

bitnet_status context::finish_transfers(const sdk::reporter& report) const {
  return check(cu.cuStreamSynchronize(transfers), "cuStreamSynchronize", report);
}

device_buffer::~device_buffer() {
  if (!address_ && !pinned_) return;
  const current mine(context_);
  if (pinned_)
    context_.cu.cuMemFreeHost(pinned_);
  else
    context_.cu.cuMemFree(address_);
}

bitnet_status device_buffer::create(gpu::memory_place where, const sdk::reporter& report) {
  const library& cu = context_.cu;
  const current mine(context_);
  if (bitnet_status s = mine.check(report); sdk::failed(s)) return s;
  const uint64_t bytes = std::max<uint64_t>((bytes_ + 3) / 4 * 4, 4);
  if (where == gpu::memory_place::host) {
    constexpr unsigned int flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
    const CUresult made = cu.cuMemHostAlloc(&pinned_, bytes, flags);
    if (made == CUDA_ERROR_OUT_OF_MEMORY)
      return report.from("cuda", static_cast<int>(made))
          .fail(BITNET_OUT_OF_MEMORY,
                "%s: the system has no %llu bytes of pinned memory left (%s); use a smaller "
                "batch or a shorter context",
                context_.facts.common.name.c_str(), static_cast<unsigned long long>(bytes),
                cu.name_of(made).c_str());
    if (made != CUDA_SUCCESS) {
      pinned_ = nullptr;
      return context_.check(made, "cuMemHostAlloc", report);
    }
    std::memset(pinned_, 0, bytes);
    return context_.check(cu.cuMemHostGetDevicePointer(&address_, pinned_, 0),
                          "cuMemHostGetDevicePointer", report);
  }
  const CUresult made = cu.cuMemAlloc(&address_, bytes);
  if (made != CUDA_SUCCESS) {
    address_ = 0;
    return context_.check(made, "cuMemAlloc", report);
  }
  if (bitnet_status s =
          context_.check(cu.cuMemsetD32Async(address_, 0, bytes / 4, context_.transfers),
                         "cuMemsetD32Async", report);
      sdk::failed(s))
    return s;
  return context_.finish_transfers(report);
}

void overlap::refuse(CUresult answer) {
  if (!wanted_.exchange(false)) return;
  log_(BITNET_LOG_INFO,
       context_.facts.common.name +
           ": the driver does not launch a kernel before the previous one has ended (" +
           context_.cu.name_of(answer) + "); kernels run one after another");
}

device::~device() {
  if (modules_.empty()) return;
  const current mine(context_);
  for (const auto& [from, loaded] : modules_) context_.cu.cuModuleUnload(loaded);
}

bitnet_status device::open(const sdk::reporter& report) {
  management_ = nvml::open(usual_nvml, context_.facts.common.pci_address);
  if (bitnet_status s = context_.open(report); sdk::failed(s)) return s;
  if (!checks()) return BITNET_OK;
  return compare_forms(form_trials(describe()), optional_forms(), {"cuda", "the driver's version"},
                       report);
}

bitnet_status device::status(bitnet_device_status& out, const sdk::reporter& report) const {
  size_t free = 0, total = 0;
  {
    const current mine(context_);
    if (bitnet_status s = mine.check(report); sdk::failed(s)) return s;
    const CUresult answer = context_.cu.cuMemGetInfo(&free, &total);
    if (answer != CUDA_SUCCESS) return context_.check(answer, "cuMemGetInfo", report);
  }
  out.known |= BITNET_STATUS_MEMORY;
  out.memory_total_bytes = total;
  out.memory_free_bytes = free_bytes(context_.facts.integrated, free, total, usual_meminfo);
  if (management_) management_->add(out);
  return BITNET_OK;
}

bitnet_status device::find_module(const image& from, CUmodule& out, const sdk::reporter& report) {
  const auto known = modules_.find(&from);
  if (known != modules_.end()) {
    out = known->second;
    return BITNET_OK;
  }
  const gpu::range here(watcher_, "load kernels of ", from.name);
  CUmodule& made = modules_[&from];  // before the load: the insertion may throw
  if (bitnet_status s = context_.check(context_.cu.cuModuleLoadData(&made, from.data),
                                       "cuModuleLoadData", report);
      sdk::failed(s)) {
    modules_.erase(&from);
    return s;
  }
  out = made;
  return BITNET_OK;
}

bitnet_status device::find_function(const image& from, const std::string& name,
                                    uint32_t shared_bytes, CUfunction& out,
                                    const sdk::reporter& report) {
  constexpr uint32_t unasked = 48 << 10;  // available to every launch without an attribute
  CUmodule module = nullptr;
  if (bitnet_status s = find_module(from, module, report); sdk::failed(s)) return s;
  bitnet_status s = context_.check(context_.cu.cuModuleGetFunction(&out, module, name.c_str()),
                                   "cuModuleGetFunction", report);
  if (!sdk::failed(s) && shared_bytes > unasked)
    s = context_.check(
        context_.cu.cuFuncSetAttribute(out, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                       static_cast<int>(shared_bytes)),
        "cuFuncSetAttribute", report);
  return s;
}

bitnet_status device::find_functions(const image& from, const std::string& name,
                                     uint32_t shared_bytes, bool joins, CUfunction& one,
                                     CUfunction& joined, const sdk::reporter& report) {
  bitnet_status s = find_function(from, name, shared_bytes, one, report);
  if (!sdk::failed(s) && joins)
    s = find_function(from, name + "_joined", shared_bytes, joined, report);
  return s;
}

bitnet_status device::make_kernel_without(const forms& off, bool bounded,
                                          const gpu::kernel_spec& spec,
                                          std::unique_ptr<gpu::kernel>& out,
                                          const sdk::reporter& report) {
  auto made = std::make_unique<kernel>();
  made->spec = spec;
  made->most_looks = bounded ? most_looks : 0;
  if (!find_form(spec, off, made->form))
    return report.fail(BITNET_UNSUPPORTED, "%s: no form of kernel %s for groups of %u threads",
                       context_.facts.common.name.c_str(), gpu::kernel_label(spec.id),
                       spec.constants[0]);
  if (made->form.shared_bytes > context_.facts.common.capabilities.shared_memory_bytes)
    return report.fail(BITNET_UNSUPPORTED,
                       "%s: kernel %s takes %u bytes of shared memory, and there are %u; use the "
                       "cpu backend",
                       context_.facts.common.name.c_str(), made->form.function.c_str(),
                       made->form.shared_bytes,
                       context_.facts.common.capabilities.shared_memory_bytes);
  const current mine(context_);
  if (bitnet_status s = mine.check(report); sdk::failed(s)) return s;
  const kernel_form& form = made->form;
  if (bitnet_status s = find_functions(*form.from, form.function, form.shared_bytes, form.joins,
                                       made->function, made->joined, report);
      sdk::failed(s))
    return s;
  for (uint32_t i = 0; i < form.tiled_count; ++i) {
    if ((form.usable >> i & 1) == 0) continue;
    const tiled_form& one = form.tiled[i];
    if (bitnet_status s =
            find_functions(*one.from, one.function, one.tile.shared_bytes, one.tile.joins,
                           made->tiled[i], made->joined_tiled[i], report);
        sdk::failed(s))
      return s;
  }
  out = std::move(made);
  return BITNET_OK;
}

bitnet_status device::record(std::span<const gpu::command> commands, bool timed,
                             std::unique_ptr<gpu::recording>& out, const sdk::reporter& report) {
  const current mine(context_);
  if (bitnet_status s = mine.check(report); sdk::failed(s)) return s;
  auto made = std::make_unique<recording>(context_, timed, overlap_);
  if (bitnet_status s = made->build(commands, report); sdk::failed(s)) return s;
  out = std::move(made);
  return BITNET_OK;
}

bitnet_status device::make_queue(std::unique_ptr<gpu::queue>& out, const sdk::reporter& report) {
  return gpu::make_event_queue<stream>(context_, out, report);
}

}  // namespace bitnet::cuda
