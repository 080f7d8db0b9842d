#include "device_facts.hpp"

#include <algorithm>
#include <cstdio>

#include "forms.hpp"
#include "gpu-common/device_text.hpp"

namespace bitnet::level_zero {
namespace {

// Least and most bytes of group memory that kernels are built for; see forms.cmake.
constexpr uint32_t least_shared = 32768, most_shared = 65536;

// A driver's name, whether or not it is terminated.
template <size_t N>
std::string text_of(const char (&from)[N]) {
  return {from, std::find(std::begin(from), std::end(from), '\0')};
}

std::string pci_of(const library& calls, ze_device_handle_t device) {
  ze_pci_ext_properties_t at{};
  at.stype = ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES;
  if (!calls.pci || calls.pci(device, &at) != ZE_RESULT_SUCCESS) return "";
  char out[32];
  std::snprintf(out, sizeof out, "%04x:%02x:%02x.%x", at.address.domain & 0xffffu,
                at.address.bus & 0xffu, at.address.device & 0x1fu, at.address.function & 7u);
  return out;
}

// Bytes of all memories of a device.
uint64_t memory_of(const library& calls, ze_device_handle_t device) {
  uint32_t n = 0;
  if (calls.zeDeviceGetMemoryProperties(device, &n, nullptr) != ZE_RESULT_SUCCESS) return 0;
  std::vector<ze_device_memory_properties_t> all(std::min(n, 64u));
  for (auto& one : all) one.stype = ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES;
  n = static_cast<uint32_t>(all.size());
  if (calls.zeDeviceGetMemoryProperties(device, &n, all.data()) != ZE_RESULT_SUCCESS) return 0;
  uint64_t out = 0;
  for (uint32_t i = 0; i < std::min<size_t>(n, all.size()); ++i) out += all[i].totalSize;
  return out;
}

// False if no queue of a device runs kernels.
bool find_queue(const library& calls, ze_device_handle_t device, uint32_t& ordinal) {
  uint32_t n = 0;
  if (calls.zeDeviceGetCommandQueueGroupProperties(device, &n, nullptr) != ZE_RESULT_SUCCESS)
    return false;
  std::vector<ze_command_queue_group_properties_t> all(std::min(n, 64u));
  for (auto& one : all) one.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES;
  n = static_cast<uint32_t>(all.size());
  if (calls.zeDeviceGetCommandQueueGroupProperties(device, &n, all.data()) != ZE_RESULT_SUCCESS)
    return false;
  for (uint32_t i = 0; i < std::min<size_t>(n, all.size()); ++i)
    if ((all[i].flags & ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE) && all[i].numQueues != 0) {
      ordinal = i;
      return true;
    }
  return false;
}

std::string numbers(uint32_t found, uint32_t needed) {
  return std::to_string(found) + ", " + std::to_string(needed) + " are needed";
}

// Reads the limits of work groups. Returns why the device cannot be used, or "".
std::string groups_of(const library& calls, ze_device_handle_t device, gpu::capabilities& out) {
  ze_device_compute_properties_t can{};
  can.stype = ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES;
  if (const ze_result_t r = calls.zeDeviceGetComputeProperties(device, &can);
      r != ZE_RESULT_SUCCESS)
    return "zeDeviceGetComputeProperties answers " + result_name(r);
  const uint32_t threads = std::min(can.maxTotalGroupSize, can.maxGroupSizeX);
  if (threads < group_threads)
    return "the threads of its work groups are " + numbers(threads, group_threads);
  if (can.maxSharedLocalMemory < least_shared)
    return "the bytes of memory of its work groups are " +
           numbers(can.maxSharedLocalMemory, least_shared);
  out.max_group_size = threads;
  out.group_size = group_threads;
  out.max_groups = std::min({65535u, can.maxGroupCountX, can.maxGroupCountY});
  // Forms have room for whatever planners put into this size.
  out.shared_memory_bytes = can.maxSharedLocalMemory >= most_shared ? most_shared : least_shared;
  return out.max_groups == 0 ? "it launches no work groups" : "";
}

std::string language_of(const library& calls, ze_device_handle_t device) {
  ze_device_module_properties_t can{};
  can.stype = ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES;
  if (const ze_result_t r = calls.zeDeviceGetModuleProperties(device, &can); r != ZE_RESULT_SUCCESS)
    return "zeDeviceGetModuleProperties answers " + result_name(r);
  const uint32_t version = can.spirvVersionSupported;
  if (version < ZE_MAKE_VERSION(1, 1))
    return "its driver takes SPIR-V " + std::to_string(ZE_MAJOR_VERSION(version)) + "." +
           std::to_string(ZE_MINOR_VERSION(version)) + ", 1.1 is needed; update its driver";
  constexpr ze_device_fp_flags_t needed =
      ZE_DEVICE_FP_FLAG_ROUND_TO_NEAREST | ZE_DEVICE_FP_FLAG_INF_NAN;
  if ((can.fp32flags & needed) != needed)
    return "its float has no infinity, or does not round to nearest";
  return "";
}

void describe(const library& calls, device_facts& out, uint32_t driver_version) {
  ze_device_properties_t is{};
  is.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES;
  gpu::facts& about = out.about;
  if (const ze_result_t r = calls.zeDeviceGetProperties(out.handle, &is); r != ZE_RESULT_SUCCESS) {
    about.name = "a device of Level Zero";
    out.refusal = "zeDeviceGetProperties answers " + result_name(r);
    return;
  }
  about.name = text_of(is.name);
  if (about.name.empty()) about.name = "a device of Level Zero";
  about.uuid = gpu::uuid_text(is.uuid.id);
  about.pci_address = pci_of(calls, out.handle);
  char arch[16];
  std::snprintf(arch, sizeof arch, "%04x:%04x", is.vendorId & 0xffffu, is.deviceId & 0xffffu);
  about.arch = arch;
  about.driver_version = std::to_string(driver_version >> 24) + "." +
                         std::to_string(driver_version >> 16 & 255) + "." +
                         std::to_string(driver_version & 0xffffu);
  about.device_class = BITNET_DEVICE_GPU;
  about.memory_total_bytes = memory_of(calls, out.handle);
  about.compute_units = is.numSlices * is.numSubslicesPerSlice * is.numEUsPerSubslice;
  gpu::capabilities& can = about.capabilities;
  can.max_allocation_bytes = can.max_binding_bytes = is.maxMemAllocSize;
  can.max_allocation_name = can.max_binding_name = "maxMemAllocSize";
  can.max_bindings = gpu::max_kernel_bindings;
  can.max_kept = most_kept;
  out.uuid = is.uuid;
  out.tick_ns = static_cast<double>(is.timerResolution);
  const uint32_t bits = is.kernelTimestampValidBits;
  out.tick_mask = bits == 0 || bits >= 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
  if (is.type != ZE_DEVICE_TYPE_GPU) out.refusal = "it is no GPU";
  if (out.refusal.empty()) out.refusal = groups_of(calls, out.handle, can);
  if (out.refusal.empty()) out.refusal = language_of(calls, out.handle);
  if (out.refusal.empty() && !find_queue(calls, out.handle, out.compute_ordinal))
    out.refusal = "none of its queues runs kernels";
}

// Handles of drivers, or of a driver's devices, by a call that counts them first.
template <class Handle, class Ask>
std::vector<Handle> handles_of(Ask&& ask, ze_result_t& result) {
  uint32_t n = 0;
  std::vector<Handle> out;
  result = ask(&n, static_cast<Handle*>(nullptr));
  if (result != ZE_RESULT_SUCCESS) return out;
  out.resize(std::min(n, 1024u));
  n = static_cast<uint32_t>(out.size());
  if (n != 0) result = ask(&n, out.data());
  out.resize(result == ZE_RESULT_SUCCESS ? std::min<size_t>(n, out.size()) : 0);
  return out;
}

std::vector<device_facts> devices_of(const library& calls, ze_driver_handle_t driver,
                                     std::string& seen) {
  ze_driver_properties_t is{};
  is.stype = ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES;
  if (calls.zeDriverGetProperties(driver, &is) != ZE_RESULT_SUCCESS) is.driverVersion = 0;
  ze_result_t result = ZE_RESULT_SUCCESS;
  const auto found = handles_of<ze_device_handle_t>(
      [&](uint32_t* n, ze_device_handle_t* to) { return calls.zeDeviceGet(driver, n, to); },
      result);
  if (found.empty())
    seen += " a driver has no device" +
            (result == ZE_RESULT_SUCCESS ? "" : ": zeDeviceGet answers " + result_name(result)) +
            ";";
  std::vector<device_facts> out(found.size());
  for (size_t i = 0; i < found.size(); ++i) {
    out[i].driver = driver;
    out[i].handle = found[i];
    describe(calls, out[i], is.driverVersion);
    if (!out[i].refusal.empty()) seen += " " + out[i].about.name + ": " + out[i].refusal + ";";
  }
  return out;
}

}  // namespace

std::vector<device_facts> list_devices(const library& calls, std::string& why) {
  ze_result_t result = ZE_RESULT_SUCCESS;
  const auto drivers = handles_of<ze_driver_handle_t>(
      [&](uint32_t* n, ze_driver_handle_t* to) { return calls.zeDriverGet(n, to); }, result);
  std::string seen;
  if (drivers.empty())
    seen = " there is no driver" +
           (result == ZE_RESULT_SUCCESS ? "" : ", zeDriverGet answers " + result_name(result)) +
           ";";
  std::vector<device_facts> out;
  for (ze_driver_handle_t driver : drivers)
    for (device_facts& d : devices_of(calls, driver, seen)) out.push_back(std::move(d));
  const bool usable =
      std::any_of(out.begin(), out.end(), [](const device_facts& d) { return d.refusal.empty(); });
  if (!usable)
    why = "no device of Level Zero can be used:" + seen +
          " install or update the driver for your GPU (Debian: intel-opencl-icd)";
  return out;
}

}  // namespace bitnet::level_zero
