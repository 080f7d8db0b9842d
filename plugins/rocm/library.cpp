#include "library.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace bitnet::rocm {
namespace {

// A variable of the environment by which devices are hidden from the runtime, if one is set.
std::string hiding_variable() {
  for (const char* name : {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"})
    if (const char* value = std::getenv(name)) return std::string(name) + "=" + value;
  return "";
}

bool is_no_device(hipError_t result) noexcept {
  return result == hipErrorNoDevice || result == hipErrorInvalidDevice;
}

void* open_first(std::string& name) {
  for (const char* file : usual_runtimes)
    if (void* opened = dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
      name = file;
      return opened;
    }
  return nullptr;
}

}  // namespace

std::string no_device(const char* kfd) {
  const std::string begin = "the ROCm runtime finds no device: ";
  if (access(kfd, F_OK) != 0)
    return begin + "there is no " + kfd +
           ", the node of the kernel's driver amdgpu; see whether lsmod lists amdgpu, and in "
           "containers pass --device=/dev/kfd --device=/dev/dri";
  if (access(kfd, R_OK | W_OK) != 0)
    return begin + kfd +
           " may not be opened; add the user to the groups render and video (usermod -aG "
           "render,video USER) and log in again";
  const std::string hidden = hiding_variable();
  return begin + (hidden.empty() ? "see whether rocminfo lists one"
                                 : "see whether " + hidden + " hides it");
}

std::string target_override() {
  constexpr const char* name = "HSA_OVERRIDE_GFX_VERSION";
  const char* value = std::getenv(name);
  return value ? std::string(name) + "=" + value : "";
}

std::string version_text(int version) {
  return std::to_string(version / 10000000) + "." + std::to_string(version / 100000 % 100);
}

std::string library::name_of(hipError_t result) const {
  const std::string number = std::to_string(result);
  const char* name = hipGetErrorName(result);
  if (!name) return "HIP error " + number;
  return std::string(name) + " (" + number + ")";
}

std::unique_ptr<library> open_library(std::string& why, const char* kfd) {
  std::string file;
  void* opened = open_first(file);
  if (!opened) {
    why =
        "the ROCm runtime libamdhip64.so.7, .so.6 or .so.5 is not installed: install that of your "
        "system (libamdhip64-5 on Debian 12, hip-runtime-amd of AMD's packages) and see whether "
        "ldconfig -p lists it; packages of AMD put it into /opt/rocm/lib";
    return nullptr;
  }
  auto out = std::make_unique<library>();
  const char* missing = nullptr;
#define BITNET_ROCM_FIND(name, type) \
  out->name = reinterpret_cast<decltype(out->name)>(dlsym(opened, #name));
#define BITNET_ROCM_NEED(name, type) \
  BITNET_ROCM_FIND(name, type)       \
  if (!out->name) missing = #name;
  BITNET_ROCM_CALLS(BITNET_ROCM_NEED)
  BITNET_ROCM_OPTIONAL_CALLS(BITNET_ROCM_FIND)
#undef BITNET_ROCM_NEED
#undef BITNET_ROCM_FIND
  if (!missing && !out->hipGetDevicePropertiesR0600 && !out->hipGetDeviceProperties)
    missing = "hipGetDeviceProperties";
  if (missing) {
    why = "the ROCm runtime " + file + " has no " + missing + "; update ROCm";
    dlclose(opened);
    return nullptr;
  }
  if (const hipError_t started = out->hipInit(0); started != hipSuccess) {
    why = is_no_device(started)
              ? no_device(kfd)
              : "the ROCm runtime " + file + " does not start: hipInit failed with " +
                    out->name_of(started) +
                    "; see whether rocminfo works and /dev/kfd can be opened";
    return nullptr;  // it stays open: what it began may still run
  }
  if (out->hipDriverGetVersion(&out->version) != hipSuccess) out->version = 0;
  return out;
}

}  // namespace bitnet::rocm
