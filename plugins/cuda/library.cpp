#include "library.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include "nvml.hpp"

namespace bitnet::cuda {
namespace {

// Says why an installed driver does not start, and what the user can do.
std::string not_started(const library& cu, CUresult result) {
  switch (result) {
    case CUDA_ERROR_NO_DEVICE:
      return no_device();
    case CUDA_ERROR_STUB_LIBRARY:
      return "libcuda.so.1 is the toolkit's stub and not a driver; take its folder out of "
             "LD_LIBRARY_PATH";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      return "libcuda.so.1 and the kernel's NVIDIA module are of different versions; restart the "
             "machine after updating the driver";
    case CUDA_ERROR_SYSTEM_NOT_READY:
      return "the NVIDIA system is not ready yet; see whether nvidia-fabricmanager runs";
    default:
      return "the NVIDIA driver does not start: cuInit failed with " + cu.name_of(result) +
             "; see whether nvidia-smi works and /dev/nvidia-uvm can be opened";
  }
}

}  // namespace

std::string not_installed(const char* file, bool wsl) {
  const std::string out = std::string("the NVIDIA driver ") + file + " is not installed: ";
  if (wsl)
    return out +
           "in WSL it is that of Windows; install or update it there, none in Linux, and see "
           "whether /usr/lib/wsl/lib has it and is in /etc/ld.so.conf.d";
  return out +
         "install the driver of your GPU, such as nvidia-driver or, in containers, "
         "nvidia-container-toolkit on the host";
}

std::string no_device() {
  const std::string advice = advice_on_instances(usual_nvml);
  return "the NVIDIA driver shows no device: " +
         (advice.empty()
              ? "see whether nvidia-smi lists one and CUDA_VISIBLE_DEVICES, if it is set, "
                "does not hide it"
              : advice);
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string library::name_of(CUresult result) const {
  const std::string number = std::to_string(static_cast<int>(result));
  const char* name = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || !name) return "CUDA status " + number;
  return std::string(name) + " (" + number + ")";
}

std::unique_ptr<library> open_library(const char* file, std::string& why) {
  void* opened = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!opened) {
    why = not_installed(file, access(node_of_wsl, F_OK) == 0);
    return nullptr;
  }
  auto out = std::make_unique<library>();
  const char* missing = nullptr;
#define BITNET_CUDA_SPELL(name) #name
#define BITNET_CUDA_TEXT(name) BITNET_CUDA_SPELL(name)
#define BITNET_CUDA_FIND(name) \
  out->name = reinterpret_cast<decltype(out->name)>(dlsym(opened, BITNET_CUDA_TEXT(name)));
#define BITNET_CUDA_NEED(name) \
  BITNET_CUDA_FIND(name)       \
  if (!out->name) missing = BITNET_CUDA_TEXT(name);
  BITNET_CUDA_CALLS(BITNET_CUDA_NEED)
  BITNET_CUDA_OPTIONAL_CALLS(BITNET_CUDA_FIND)
#undef BITNET_CUDA_NEED
#undef BITNET_CUDA_FIND
#undef BITNET_CUDA_TEXT
#undef BITNET_CUDA_SPELL
  const std::string needed = "CUDA " + version_text(oldest_driver);
  if (out->cuDriverGetVersion) {
    const CUresult asked = out->cuDriverGetVersion(&out->version);
    if (asked != CUDA_SUCCESS) out->version = 0;
  }
  if (missing || out->version < oldest_driver) {
    why = std::string("the NVIDIA driver ") + file + " speaks CUDA " + version_text(out->version) +
          (out->version >= oldest_driver ? std::string(" but has no ") + missing : std::string()) +
          ", and this build's kernels need " + needed + "; update the driver";
    dlclose(opened);
    return nullptr;
  }
  if (const CUresult started = out->cuInit(0); started != CUDA_SUCCESS) {
    why = not_started(*out, started);
    return nullptr;  // not closed: cuInit may have started threads
  }
  return out;
}

}  // namespace bitnet::cuda
