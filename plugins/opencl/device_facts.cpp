#include "device_facts.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdio>
#include <cstring>

#include "gpu-common/device_text.hpp"

namespace bitnet::opencl {
namespace {

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\n");
  return first == std::string::npos
             ? ""
             : text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

std::string text_of(const library& cl, cl_device_id device, cl_device_info what) {
  size_t bytes = 0;
  if (cl.clGetDeviceInfo(device, what, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return "";
  std::string out(bytes, '\0');
  if (cl.clGetDeviceInfo(device, what, bytes, out.data(), nullptr) != CL_SUCCESS) return "";
  return trimmed(out.c_str());  // up to the terminator
}

std::string text_of(const library& cl, cl_platform_id platform, cl_platform_info what) {
  size_t bytes = 0;
  if (cl.clGetPlatformInfo(platform, what, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0)
    return "";
  std::string out(bytes, '\0');
  if (cl.clGetPlatformInfo(platform, what, bytes, out.data(), nullptr) != CL_SUCCESS) return "";
  return trimmed(out.c_str());
}

// Zero if the driver does not know the query.
template <class T>
T value_of(const library& cl, cl_device_id device, cl_device_info what) {
  T out{};
  if (cl.clGetDeviceInfo(device, what, sizeof out, &out, nullptr) != CL_SUCCESS) return T{};
  return out;
}

// "OpenCL 1.2 vendor's words": 102; 0 if the text is not of that form.
uint32_t version_of(const std::string& text) {
  unsigned major = 0, minor = 0;
  // NOLINTNEXTLINE(cert-err34-c): numbers that are too large give a version that is rejected
  if (std::sscanf(text.c_str(), "OpenCL %u.%u", &major, &minor) != 2) return 0;
  return major > 99 || minor > 99 ? 0 : 100 * major + minor;
}

uint32_t class_of(cl_device_type type) {
  if (type & CL_DEVICE_TYPE_GPU) return BITNET_DEVICE_GPU;
  if (type & CL_DEVICE_TYPE_CPU) return BITNET_DEVICE_CPU;
  return BITNET_DEVICE_OTHER;
}

std::string uuid_of(const library& cl, cl_device_id device, const std::string& extensions) {
  if (!has_extension(extensions, "cl_khr_device_uuid")) return "";
  unsigned char bytes[CL_UUID_SIZE_KHR] = {};
  if (cl.clGetDeviceInfo(device, CL_DEVICE_UUID_KHR, sizeof bytes, bytes, nullptr) != CL_SUCCESS)
    return "";
  if (std::all_of(std::begin(bytes), std::end(bytes), [](unsigned char b) { return b == 0; }))
    return "";
  return gpu::uuid_text(bytes);
}

std::string pci_of(const library& cl, cl_device_id device, const std::string& extensions) {
  if (!has_extension(extensions, "cl_khr_pci_bus_info")) return "";
  cl_device_pci_bus_info_khr at{};
  if (cl.clGetDeviceInfo(device, CL_DEVICE_PCI_BUS_INFO_KHR, sizeof at, &at, nullptr) != CL_SUCCESS)
    return "";
  char out[32];
  std::snprintf(out, sizeof out, "%04x:%02x:%02x.%x", at.pci_domain & 0xffffu, at.pci_bus & 0xffu,
                at.pci_device & 0x1fu, at.pci_function & 7u);
  return out;
}

// Only an accelerated dot product justifies another form of a kernel.
bool accelerates_dot(const library& cl, cl_device_id device, const std::string& extensions) {
  if (!has_extension(extensions, "cl_khr_integer_dot_product")) return false;
  const auto can =
      value_of<cl_bitfield>(cl, device, CL_DEVICE_INTEGER_DOT_PRODUCT_CAPABILITIES_KHR);
  if (!(can & CL_DEVICE_INTEGER_DOT_PRODUCT_INPUT_4x8BIT_PACKED_KHR)) return false;
  const auto fast = value_of<cl_device_integer_dot_product_acceleration_properties_khr>(
      cl, device, CL_DEVICE_INTEGER_DOT_PRODUCT_ACCELERATION_PROPERTIES_4x8BIT_PACKED_KHR);
  return fast.signed_accelerated != CL_FALSE;
}

device_traits traits_of(const library& cl, cl_device_id device, const std::string& extensions,
                        cl_device_type type) {
  device_traits out;
  const auto single = value_of<cl_device_fp_config>(cl, device, CL_DEVICE_SINGLE_FP_CONFIG);
  out.doubles = has_extension(extensions, "cl_khr_fp64") &&
                value_of<cl_device_fp_config>(cl, device, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
  out.exact_division = (single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  out.dot_product = accelerates_dot(cl, device, extensions);
  out.runs_on_cores = (type & CL_DEVICE_TYPE_CPU) != 0;
  constexpr uint64_t most = UINT32_MAX;
  out.max_group_items = static_cast<uint32_t>(
      std::clamp<uint64_t>(value_of<size_t>(cl, device, CL_DEVICE_MAX_WORK_GROUP_SIZE), 1, most));
  out.local_bytes = static_cast<uint32_t>(
      std::min<uint64_t>(value_of<cl_ulong>(cl, device, CL_DEVICE_LOCAL_MEM_SIZE), most));
  return out;
}

// Why a device cannot be used, "" if it can.
std::string refusal_of(const library& cl, cl_device_id device, const std::string& version) {
  if (value_of<cl_bool>(cl, device, CL_DEVICE_AVAILABLE) == CL_FALSE)
    return "its driver says that it is not available";
  if (version_of(version) < 102)
    return "it speaks '" + version + "'; OpenCL 1.2 is needed, update its driver";
  if (value_of<cl_bool>(cl, device, CL_DEVICE_COMPILER_AVAILABLE) == CL_FALSE)
    return "its driver has no compiler";
  if (value_of<cl_bool>(cl, device, CL_DEVICE_ENDIAN_LITTLE) == CL_FALSE)
    return "it is big-endian, and the kernels read little-endian weights";
  if (text_of(cl, device, CL_DEVICE_NAME).starts_with("llvmpipe"))
    return "its driver ends loops after 65535 passes without an error; use PoCL "
           "(pocl-opencl-icd) or the cpu backend";
  const auto single = value_of<cl_device_fp_config>(cl, device, CL_DEVICE_SINGLE_FP_CONFIG);
  if (!(single & CL_FP_ROUND_TO_NEAREST)) return "it does not round float to nearest";
  if (!(single & CL_FP_INF_NAN)) return "its float has no infinity";
  return "";
}

device_facts facts_of(const library& cl, cl_platform_id platform, const std::string& platform_name,
                      cl_device_id device) {
  device_facts out;
  out.platform = platform;
  out.id = device;
  out.platform_name = platform_name;
  const std::string extensions = text_of(cl, device, CL_DEVICE_EXTENSIONS);
  const std::string version = text_of(cl, device, CL_DEVICE_VERSION);
  const std::string driver_version = text_of(cl, device, CL_DRIVER_VERSION);
  const auto type = value_of<cl_device_type>(cl, device, CL_DEVICE_TYPE);
  std::string name = text_of(cl, device, CL_DEVICE_NAME);
  if (name.empty()) name = platform_name;
  out.driver = platform_name + "; " + text_of(cl, platform, CL_PLATFORM_VERSION) + "; " + name +
               "; " + version + "; " + driver_version;
  out.refusal = refusal_of(cl, device, version);
  out.traits = traits_of(cl, device, extensions, type);
  out.reports_free_memory = has_extension(extensions, "cl_amd_device_attribute_query");

  bitnet_device_info& info = out.info;
  info.struct_size = sizeof info;
  info.device_class = class_of(type);
  std::snprintf(info.name, sizeof info.name, "%s", name.c_str());
  std::snprintf(info.uuid, sizeof info.uuid, "%s", uuid_of(cl, device, extensions).c_str());
  std::snprintf(info.pci_address, sizeof info.pci_address, "%s",
                pci_of(cl, device, extensions).c_str());
  std::snprintf(info.arch, sizeof info.arch, "%s",
                version.substr(0, version.find(' ', sizeof "OpenCL")).c_str());
  std::snprintf(info.driver_version, sizeof info.driver_version, "%s", driver_version.c_str());
  info.memory_total_bytes = value_of<cl_ulong>(cl, device, CL_DEVICE_GLOBAL_MEM_SIZE);
  info.max_allocation_bytes = value_of<cl_ulong>(cl, device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  info.compute_units = value_of<cl_uint>(cl, device, CL_DEVICE_MAX_COMPUTE_UNITS);
  const auto align_bytes = value_of<cl_uint>(cl, device, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
  info.buffer_alignment_bytes = std::bit_ceil(std::clamp<uint32_t>(align_bytes, 4, 1u << 16));
  return out;
}

}  // namespace

bool free_memory_of(const library& cl, const device_facts& device, uint64_t& bytes) {
  if (!device.reports_free_memory) return false;
  size_t kib[2] = {};  // total, and the largest block
  size_t written = 0;
  const cl_int asked =
      cl.clGetDeviceInfo(device.id, CL_DEVICE_GLOBAL_FREE_MEMORY_AMD, sizeof kib, kib, &written);
  if (asked != CL_SUCCESS || written < sizeof kib[0] || kib[0] > UINT64_MAX / 1024) return false;
  bytes = uint64_t{kib[0]} * 1024;
  return true;
}

bool has_extension(const std::string& list, const char* extension) {
  return (" " + list + " ").find(std::string(" ") + extension + " ") != std::string::npos;
}

std::vector<device_facts> list_devices(const library& cl, std::string& why) {
  cl_uint n = 0;
  const cl_int found = cl.clGetPlatformIDs(0, nullptr, &n);
  std::vector<cl_platform_id> platforms(found == CL_SUCCESS ? n : 0);
  if (!platforms.empty() && cl.clGetPlatformIDs(n, platforms.data(), nullptr) != CL_SUCCESS)
    platforms.clear();
  if (platforms.empty()) {
    why = "the OpenCL loader finds no driver" +
          (found == CL_SUCCESS || found == CL_PLATFORM_NOT_FOUND_KHR ? std::string()
                                                                     : ": " + status_name(found)) +
          ": install one for your device (intel-opencl-icd, nvidia-opencl-icd, mesa-opencl-icd or, "
          "for CPUs, pocl-opencl-icd), or correct OCL_ICD_VENDORS if it is set";
    return {};
  }
  std::vector<device_facts> out;
  std::string seen;
  for (cl_platform_id platform : platforms) {
    const std::string name = text_of(cl, platform, CL_PLATFORM_NAME);
    cl_uint count = 0;
    const cl_int status = cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count);
    std::vector<cl_device_id> devices(status == CL_SUCCESS ? count : 0);
    if (!devices.empty() && cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data(),
                                              nullptr) != CL_SUCCESS)
      devices.clear();
    seen += (seen.empty() ? "" : "; ") + name;
    if (devices.empty())
      seen += " has no device" + (status == CL_SUCCESS || status == CL_DEVICE_NOT_FOUND
                                      ? std::string()
                                      : " (" + status_name(status) + ")");
    // Mesa's driver shows no device unless a variable names the hardware.
    if (devices.empty() && name == "rusticl")
      seen += " unless RUSTICL_ENABLE names its drivers, such as radeonsi or iris";
    for (cl_device_id device : devices) {
      out.push_back(facts_of(cl, platform, name, device));
      if (!out.back().refusal.empty())
        seen += std::string(" has ") + out.back().info.name + ", but " + out.back().refusal;
    }
  }
  const bool usable =
      std::any_of(out.begin(), out.end(), [](const device_facts& d) { return d.refusal.empty(); });
  if (!usable)
    why = "no OpenCL device can be used: " + seen +
          "; install a driver for your device, for CPUs pocl-opencl-icd";
  return out;
}

}  // namespace bitnet::opencl
