#include "device_facts.hpp"

#include <algorithm>

#include "gpu-common/device_text.hpp"
#include "gpu-common/simt_kernels.hpp"
#include "kernel_table.hpp"

namespace bitnet::cuda {
namespace {

// Returns 0 for an attribute that the driver does not know.
int attribute(const library& cu, CUdevice device, CUdevice_attribute what) {
  int out = 0;
  return cu.cuDeviceGetAttribute(&out, what, device) == CUDA_SUCCESS ? std::max(out, 0) : 0;
}

std::string name_of(const library& cu, CUdevice device) {
  char out[256] = {};
  const CUresult asked = cu.cuDeviceGetName(out, sizeof out - 1, device);
  return asked == CUDA_SUCCESS && *out ? out : "NVIDIA GPU";
}

std::string uuid_of(const library& cu, CUdevice device) {
  CUuuid id{};
  if (cu.cuDeviceGetUuid(&id, device) != CUDA_SUCCESS) return "";
  return gpu::uuid_text(id.bytes);
}

std::string pci_of(const library& cu, CUdevice device) {
  char out[32] = {};
  if (cu.cuDeviceGetPCIBusId(out, sizeof out - 1, device) != CUDA_SUCCESS) return "";
  return gpu::lower_case(out);
}

// The element types that the tensor cores multiply. The driver does not report them; they follow
// from the compute capability. GPUs named GTX 16 or MX have capability 7.5 without tensor cores.
std::string tensor_cores_of(int architecture, const std::string& name) {
  const bool none =
      name.find("GTX 16") != std::string::npos || name.find(" MX") != std::string::npos;
  if (architecture < 75 || (architecture == 75 && none)) return "";
  return architecture < 80 ? ", tensor cores (i8, f16)" : ", tensor cores (i8, f16, bf16)";
}

std::string refusal_of(const library& cu, CUdevice device, int architecture) {
  if (attribute(cu, device, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) == CU_COMPUTEMODE_PROHIBITED)
    return "its compute mode is 'prohibited'; allow it with nvidia-smi -c DEFAULT";
  if (code_of(architecture) == 0)
    return "its architecture is sm_" + std::to_string(architecture) + ", and this build has " +
           built_architectures() +
           "; use a build with BITNET_CUDA_ARCHS=" + std::to_string(architecture);
  if (attribute(cu, device, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING) == 0)
    return "it does not share addresses with the host, which this backend needs";
  return "";
}

device_facts facts_of(const library& cu, CUdevice device) {
  const auto ask = [&](CUdevice_attribute what) {
    return static_cast<uint32_t>(attribute(cu, device, what));
  };
  const auto architecture =
      static_cast<int>(10 * ask(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                       ask(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  device_facts out;
  out.id = device;
  out.exclusive = ask(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) == CU_COMPUTEMODE_EXCLUSIVE_PROCESS;
  out.integrated = ask(CU_DEVICE_ATTRIBUTE_INTEGRATED) != 0;
  out.refusal = refusal_of(cu, device, architecture);
  out.overlaps = cu.cuGraphAddDependencies_v2 && code_of(architecture) >= first_that_waits;
  out.warp_groups = has_warp_groups(architecture);
  out.many_doubles = has_many_doubles(architecture);
  gpu::facts& about = out.common;
  about.name = name_of(cu, device);
  about.uuid = uuid_of(cu, device);
  about.pci_address = pci_of(cu, device);
  about.arch = "sm_" + std::to_string(architecture) + tensor_cores_of(architecture, about.name);
  about.driver_version = "CUDA " + version_text(cu.version);
  about.device_class = BITNET_DEVICE_GPU;
  size_t bytes = 0;
  if (cu.cuDeviceTotalMem(&bytes, device) == CUDA_SUCCESS) about.memory_total_bytes = bytes;
  gpu::capabilities& can = about.capabilities;
  can.max_allocation_bytes = can.max_binding_bytes = about.memory_total_bytes;
  about.compute_units = ask(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  gpu::set_simt_facts(about);
  // Shared memory of a launch without an attribute, less the static shared memory of kernels.
  constexpr uint32_t fixed_bytes = BITNET_CUDA_FIXED_SHARED;
  const uint32_t shared = ask(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  can.shared_memory_bytes = shared - std::min(shared, fixed_bytes);
  can.attention_rows = most_attention_rows;
  about.quirks.most_gathered = gpu::most_gathered_bytes;
  about.quirks.most_gathered_rotations = gpu::most_gathered_rotations;
  can.attention_of_token = true;
  can.precisions = 1u << BITNET_PRECISION_F16;
  if (architecture >= 80) can.precisions |= 1u << BITNET_PRECISION_BF16;
  can.rounded_heads = rounded_heads_without({});
  if (code_of(architecture) < 80) can.rounded_heads &= ~gpu::rounded_heads_bit(256);
  return out;
}

}  // namespace

std::vector<device_facts> list_devices(const library& cu, std::string& why) {
  int count = 0;
  const CUresult counted = cu.cuDeviceGetCount(&count);
  std::vector<device_facts> out;
  for (int i = 0; counted == CUDA_SUCCESS && i < count; ++i) {
    CUdevice device = 0;
    if (cu.cuDeviceGet(&device, i) != CUDA_SUCCESS) continue;
    out.push_back(facts_of(cu, device));
  }
  if (counted != CUDA_SUCCESS)
    why = "the NVIDIA driver does not count its devices: " + cu.name_of(counted) +
          "; see whether nvidia-smi works";
  else if (out.empty())
    why = no_device();
  else if (const std::string refused = gpu::refusals_of(out); !refused.empty())
    why = refused;
  return out;
}

}  // namespace bitnet::cuda
