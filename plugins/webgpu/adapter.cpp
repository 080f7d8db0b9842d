#include "adapter.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <tuple>

#include "bitnet/abi/info.h"

namespace bitnet::webgpu {
namespace {

// Threads of a work group, as in the vulkan backend, which has the same drivers: 64 is one or two
// waves everywhere, and software renderers run a vector as one.
constexpr uint32_t hardware_group = 64, software_group = 8;
// llvmpipe: a command costs 20 to 60 us, an element to normalise and quantise 20 ns.
constexpr uint32_t software_repeated = 4096;
// llvmpipe silently ends all loops of a thread after this number of passes together.
constexpr uint32_t llvmpipe_passes = 65535;

void take_adapter(uint32_t status, adapter_handle found, string_view message, void* userdata,
                  void*) {
  const std::shared_ptr<answer> to = answer::take(userdata);
  to->status = status;
  to->handle = found;
  to->message = line_of(message);
  to->given = true;
}

adapter_handle request(const runtime& on, uint32_t power, bool fallback) {
  request_adapter_options asked;
  asked.powerPreference = power;
  asked.forceFallbackAdapter = fallback ? 1 : 0;
  const auto found = std::make_shared<answer>();
  request_adapter_callback_info call;
  call.callback = take_adapter;
  call.userdata1 = answer::give(found);
  {
    const std::scoped_lock held(on.lock);
    on.wgpu.InstanceRequestAdapter(on.instance, &asked, call);
  }
  if (!on.wait(*found) || found->status != status_success) return nullptr;
  return static_cast<adapter_handle>(found->handle);
}

const char* backend_name(uint32_t type) {
  constexpr const char* names[] = {"undefined", "null",   "webgpu", "d3d11",   "d3d12",
                                   "metal",     "vulkan", "opengl", "opengles"};
  return type < std::size(names) ? names[type] : "other";
}

const char* kind_of(uint32_t type) {
  switch (type) {
    case adapter_discrete_gpu:
      return "discrete";
    case adapter_integrated_gpu:
      return "integrated";
    case adapter_cpu:
      return "software";
    default:
      return "other";
  }
}

void identify(const adapter_info& info, gpu::facts& about) {
  const std::string device = line_of(info.device), description = line_of(info.description);
  about.name = !device.empty()        ? device
               : !description.empty() ? description
                                      : line_of(info.architecture);
  if (about.name.empty()) {
    char ids[32];
    std::snprintf(ids, sizeof ids, "adapter %04x:%04x", info.vendorID, info.deviceID);
    about.name = ids;
  }
  about.driver_version = description;
  about.device_class =
      info.adapterType == adapter_cpu ? BITNET_DEVICE_CPU
      : info.adapterType == adapter_discrete_gpu || info.adapterType == adapter_integrated_gpu
          ? BITNET_DEVICE_GPU
          : BITNET_DEVICE_OTHER;
  about.arch =
      std::string("webgpu on ") + backend_name(info.backendType) + " " + kind_of(info.adapterType);
}

void limit(const limits& most, gpu::capabilities& can) {
  can.max_allocation_bytes = most.maxBufferSize;
  can.max_allocation_name = "maxBufferSize";
  can.max_binding_bytes = std::min(most.maxStorageBufferBindingSize, most.maxBufferSize);
  can.max_binding_name = can.max_binding_bytes == most.maxStorageBufferBindingSize
                             ? "maxStorageBufferBindingSize"
                             : "maxBufferSize";
  can.binding_alignment = std::max(most.minStorageBufferOffsetAlignment, 4u);
  can.max_group_size =
      std::min(most.maxComputeInvocationsPerWorkgroup, most.maxComputeWorkgroupSizeX);
  can.max_groups = most.maxComputeWorkgroupsPerDimension;
  can.shared_memory_bytes = most.maxComputeWorkgroupStorageSize;
  // The step header is a uniform here, not a storage buffer.
  can.max_bindings = most.maxStorageBuffersPerShaderStage + 1;
}

void tune(gpu::facts& about) {
  const bool software = about.device_class == BITNET_DEVICE_CPU;
  gpu::capabilities& can = about.capabilities;
  can.group_size = software ? software_group : hardware_group;
  can.group_size = std::min(can.group_size, std::bit_floor(std::max(can.max_group_size, 1u)));
  if (about.name.find("llvmpipe") != std::string::npos ||
      about.driver_version.find("llvmpipe") != std::string::npos)
    about.quirks.max_passes = llvmpipe_passes;
  if (software) about.quirks.max_repeated = software_repeated;
  can.max_kept = software ? 64 : 16;  // a thread of a small group keeps more
}

// "", or why the adapter cannot run the kernels.
std::string refusal_of(const adapter_info& info, const limits& most, const wishes& user) {
  constexpr uint32_t storage = gpu::max_kernel_bindings - 1;
  if (info.backendType == backend_null)
    return "it is the null adapter, which computes nothing; install a driver for your GPU, or "
           "mesa-vulkan-drivers for one in software";
  if (!user.software && info.adapterType == adapter_cpu) return "it computes on the processor";
  if (most.maxStorageBuffersPerShaderStage < storage)
    return "a kernel needs " + std::to_string(storage) +
           " storage buffers, maxStorageBuffersPerShaderStage is " +
           std::to_string(most.maxStorageBuffersPerShaderStage);
  return "";
}

// Fills in all but the handle. Returns why the adapter cannot be used, or "".
std::string describe(const runtime& on, const wishes& user, adapter& out) {
  const std::scoped_lock held(on.lock);
  adapter_info info;
  if (on.wgpu.AdapterGetInfo(out.handle, &info) != status_success)
    return "it does not report its properties";
  identify(info, out.about);
  const bool limited = on.wgpu.AdapterGetLimits(out.handle, &out.most) == status_success;
  out.most.nextInChain = nullptr;
  std::string refusal =
      limited ? refusal_of(info, out.most, user) : "it does not report its limits";
  on.wgpu.AdapterInfoFreeMembers(info);
  if (!refusal.empty()) return refusal;
  limit(out.most, out.about.capabilities);
  tune(out.about);
  out.language.subgroups =
      user.subgroups && on.wgpu.AdapterHasFeature(out.handle, feature_subgroups) != 0;
  // wgpu-native aborts on queries for language features. Its compiler, naga, has this feature, and
  // rejects "enable subgroups".
  const bool naga = !on.wgpu.version.empty();
  out.language.enables = !naga;
  out.language.packed_dot = user.packed_dot && (naga || on.wgpu.InstanceHasWGSLLanguageFeature(
                                                            on.instance, language_packed_dot) != 0);
  out.timestamps = on.wgpu.AdapterHasFeature(out.handle, feature_timestamp_query) != 0;
  if (out.language.subgroups) out.about.arch += " subgroups";
  if (out.language.packed_dot) out.about.arch += " dot product";
  return "";
}

}  // namespace

std::vector<adapter> find_adapters(const runtime& on, const wishes& user,
                                   std::vector<std::string>& refusals) {
  struct request_of {
    uint32_t power;
    bool fallback;
  };
  constexpr request_of requests[] = {
      {power_high, false}, {power_low, false}, {power_undefined, true}};
  std::vector<adapter> out;
  std::vector<std::string> seen;
  for (const request_of& r : requests) {
    adapter found;
    found.handle = request(on, r.power, r.fallback);
    if (!found.handle) continue;
    const std::string why = describe(on, user, found);
    const std::string id =
        found.about.name + "\n" + found.about.arch + "\n" + found.about.driver_version + "\n" + why;
    const bool known = std::find(seen.begin(), seen.end(), id) != seen.end();
    if (!known) seen.push_back(id);
    if (!known && !why.empty()) refusals.push_back(found.about.name + ": " + why);
    if (!known && why.empty()) {
      out.push_back(std::move(found));
      continue;
    }
    const std::scoped_lock held(on.lock);
    on.wgpu.AdapterRelease(found.handle);
  }
  return out;
}

}  // namespace bitnet::webgpu
