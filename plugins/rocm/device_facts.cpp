#include "device_facts.hpp"

#include <algorithm>
#include <cstring>

#include "code_objects.hpp"
#include "gpu-common/device_text.hpp"
#include "gpu-common/simt_kernels.hpp"
#include "kernel_table.hpp"

namespace bitnet::rocm {
namespace {

// Zero where the runtime does not know the question.
uint32_t attribute(const library& hip, int device, int what) {
  int out = 0;
  return hip.hipDeviceGetAttribute(&out, what, device) == hipSuccess && out > 0
             ? static_cast<uint32_t>(out)
             : 0;
}

std::string name_of(const library& hip, int device) {
  char out[256] = {};
  const hipError_t asked = hip.hipDeviceGetName(out, sizeof out - 1, device);
  return asked == hipSuccess && *out ? out : "AMD GPU";
}

// AMD's are text, which ROCR_VISIBLE_DEVICES takes with GPU- in front; others are bytes.
std::string uuid_of(const library& hip, int device) {
  hipUUID id{};
  if (!hip.hipDeviceGetUuid || hip.hipDeviceGetUuid(&id, device) != hipSuccess) return "";
  const auto is_hex = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  };
  if (std::all_of(std::begin(id.bytes), std::end(id.bytes), is_hex))
    return "GPU-" + std::string(std::begin(id.bytes), std::end(id.bytes));
  return gpu::uuid_text(id.bytes);
}

std::string pci_of(const library& hip, int device) {
  char out[32] = {};
  if (hip.hipDeviceGetPCIBusId(out, sizeof out - 1, device) != hipSuccess) return "";
  return gpu::lower_case(out);
}

// The name of the architecture with its features is a member of hipDeviceProp_t alone, at a place
// that differs between releases. So it is looked for behind the first member, the device's name.
std::string architecture_of(const library& hip, int device) {
  constexpr size_t room = 8192, of_name = 256;  // the struct of HIP 7 has 1472 bytes
  std::vector<char> bytes(room + 1);
  auto* ask = hip.hipGetDevicePropertiesR0600 ? hip.hipGetDevicePropertiesR0600
                                              : hip.hipGetDeviceProperties;
  if (ask(bytes.data(), device) != hipSuccess) return "";
  const std::string_view all(bytes.data() + of_name, room - of_name);
  const size_t at = all.find("gfx");
  return at == std::string_view::npos ? "" : std::string(all.data() + at);
}

std::string refusal_of(const device_facts& about, const std::string& architecture) {
  if (about.target.empty())
    return "the runtime does not name its architecture ('" + architecture + "'); update ROCm";
  if (!has_code(about.target))
    return about.target + " is not among those that this build has code for: " + built_targets() +
           "; build with BITNET_ROCM_TARGETS=" + about.target;
  if (about.lanes != 32 && about.lanes != 64)
    return "its waves have " + std::to_string(about.lanes) + " lanes; 32 or 64 are needed";
  return "";
}

device_facts facts_of(const library& hip, int device) {
  device_facts out;
  out.id = device;
  const std::string architecture = architecture_of(hip, device);
  out.target = target_of(architecture);
  out.lanes = attribute(hip, device, hipDeviceAttributeWarpSize);
  out.refusal = refusal_of(out, architecture);
  gpu::facts& about = out.common;
  about.name = name_of(hip, device);
  about.uuid = uuid_of(hip, device);
  about.pci_address = pci_of(hip, device);
  about.arch = architecture;
  about.driver_version = "HIP " + version_text(hip.version);
  if (const std::string instead = target_override(); !instead.empty())
    about.driver_version += " with " + instead;
  about.device_class = BITNET_DEVICE_GPU;
  size_t bytes = 0;
  if (hip.hipDeviceTotalMem(&bytes, device) == hipSuccess) about.memory_total_bytes = bytes;
  gpu::capabilities& can = about.capabilities;
  can.max_allocation_bytes = can.max_binding_bytes = about.memory_total_bytes;
  about.compute_units = attribute(hip, device, hipDeviceAttributeMultiprocessorCount);
  gpu::set_simt_facts(about);
  // Less what kernels keep there of fixed size.
  constexpr uint32_t fixed_bytes = BITNET_ROCM_FIXED_SHARED;
  const uint32_t shared = attribute(hip, device, hipDeviceAttributeMaxSharedMemoryPerBlock);
  can.shared_memory_bytes = shared - std::min(shared, fixed_bytes);
  can.attention_rows = most_attention_rows;
  about.quirks.most_gathered = gpu::most_gathered_bytes;
  about.quirks.most_gathered_rotations = gpu::most_gathered_rotations;
  can.attention_of_token = has_code(out.target, "attention_token");
  return out;
}

}  // namespace

std::string target_of(const std::string& architecture) {
  const std::string target = architecture.substr(0, architecture.find(':'));
  const bool named = target.size() >= 6 && target.compare(0, 3, "gfx") == 0 &&
                     std::all_of(target.begin() + 3, target.end(), [](char c) {
                       return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
                     });
  return named ? target : "";
}

std::vector<device_facts> list_devices(const library& hip, const char* kfd, std::string& why) {
  int count = 0;
  const hipError_t counted = hip.hipGetDeviceCount(&count);
  std::vector<device_facts> out;
  for (int i = 0; counted == hipSuccess && i < count; ++i) out.push_back(facts_of(hip, i));
  if (counted != hipSuccess && counted != hipErrorNoDevice && counted != hipErrorInvalidDevice)
    why = "the ROCm runtime does not count its devices: " + hip.name_of(counted) +
          "; see whether rocminfo works";
  else if (out.empty())
    why = no_device(kfd);
  else if (const std::string refused = gpu::refusals_of(out); !refused.empty())
    why = refused;
  return out;
}

}  // namespace bitnet::rocm
