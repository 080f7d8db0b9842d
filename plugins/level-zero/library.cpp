#include "library.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <iterator>

namespace bitnet::level_zero {
namespace {

std::unique_ptr<library> resolve(const char* file, std::string& why) {
  auto out = std::make_unique<library>();
  out->opened = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!out->opened) {
    why = std::string("the Level Zero loader ") + file +
          " is not installed: install libze1 and a driver for your GPU, such as intel-opencl-icd "
          "(Debian) or libze-intel-gpu1 (Ubuntu)";
    return nullptr;
  }
  const char* missing = nullptr;
#define BITNET_LEVEL_ZERO_FIND(name)                                            \
  out->name = reinterpret_cast<decltype(out->name)>(dlsym(out->opened, #name)); \
  if (!out->name) missing = #name;
  BITNET_LEVEL_ZERO_CALLS(BITNET_LEVEL_ZERO_FIND)
#undef BITNET_LEVEL_ZERO_FIND
  out->pci =
      reinterpret_cast<decltype(out->pci)>(dlsym(out->opened, "zeDevicePciGetPropertiesExt"));
  if (!missing) return out;
  why = std::string("the Level Zero loader ") + file + " has no " + missing +
        ": Level Zero 1.0 is needed; update libze1";
  dlclose(out->opened);
  return nullptr;
}

}  // namespace

std::unique_ptr<library> open_library(const char* file, std::string& why) {
  std::unique_ptr<library> out = resolve(file, why);
  if (!out) return nullptr;
  const ze_result_t started = out->zeInit(ZE_INIT_FLAG_GPU_ONLY);
  if (started == ZE_RESULT_SUCCESS) return out;
  why = "the Level Zero loader finds no driver with a GPU: zeInit answers " + result_name(started) +
        "; install the driver for your GPU (Debian: intel-opencl-icd), and join the group of "
        "/dev/dri/renderD*, on Debian render";
  return nullptr;
}

const library* library_of_process(std::string& why) {
  struct answer {
    std::string why;
    std::unique_ptr<library> calls = open_library(usual_loader, why);
  };
  // Never destroyed: drivers have threads until the process ends.
  static const answer* const first = new answer;
  why = first->why;
  return first->calls.get();
}

std::string result_name(ze_result_t result) {
  struct named {
    ze_result_t value;
    const char* name;
  };
#define BITNET_LEVEL_ZERO_RESULT(name) {name, #name},
  static constexpr named rows[] = {
      BITNET_LEVEL_ZERO_RESULT(ZE_RESULT_NOT_READY)                           //
      BITNET_LEVEL_ZERO_RESULT(ZE_RESULT_ERROR_DEVICE_LOST)                   //
      BITNET_LEVEL_ZERO_RESULT(ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)            //
      BITNET_LEVEL_ZERO_RESULT(ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)          //
      BITNET_LEVEL_ZERO_RESULT(ZE_RESULT_ERROR_MODULE_BUILD_FAILURE)          //
      BITNET_LEVEL_ZERO_RESULT(ZE_RESULT_ERROR_MODULE_LINK_FAILURE)           //
      BITNET_LEVEL_ZERO_RESULT(ZE_RESULT_ERROR_DEVICE_REQUIRES_RESET)         //
      BITNET_LEVEL_ZERO_RESULT(ZE_RESULT_ERROR_DEVICE_IN_LOW_POWER_STATE)     //
      BITNET_LEVEL_ZERO_RESULT(ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS)      //
      BITNET_LEVEL_ZERO_RESULT(ZE_RESULT_ERROR_NOT_AVAILABLE)                 //
      BITNET_LEVEL_ZERO_RESULT(ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE)        //
      BITNET_LEVEL_ZERO_RESULT(ZE_RESULT_ERROR_UNINITIALIZED)                 //
      BITNET_LEVEL_ZERO_RESULT(ZE_RESULT_ERROR_UNSUPPORTED_VERSION)           //
      BITNET_LEVEL_ZERO_RESULT(ZE_RESULT_ERROR_UNSUPPORTED_FEATURE)           //
      BITNET_LEVEL_ZERO_RESULT(ZE_RESULT_ERROR_INVALID_ARGUMENT)              //
      BITNET_LEVEL_ZERO_RESULT(ZE_RESULT_ERROR_INVALID_NULL_HANDLE)           //
      BITNET_LEVEL_ZERO_RESULT(ZE_RESULT_ERROR_INVALID_NULL_POINTER)          //
      BITNET_LEVEL_ZERO_RESULT(ZE_RESULT_ERROR_INVALID_SIZE)                  //
      BITNET_LEVEL_ZERO_RESULT(ZE_RESULT_ERROR_UNSUPPORTED_SIZE)              //
      BITNET_LEVEL_ZERO_RESULT(ZE_RESULT_ERROR_INVALID_KERNEL_NAME)           //
      BITNET_LEVEL_ZERO_RESULT(ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE)  //
      BITNET_LEVEL_ZERO_RESULT(ZE_RESULT_ERROR_UNKNOWN)};
#undef BITNET_LEVEL_ZERO_RESULT
  char number[16];
  std::snprintf(number, sizeof number, "0x%x", static_cast<unsigned>(result));
  for (const named& row : rows)
    if (row.value == result) return std::string(row.name) + " (" + number + ")";
  return std::string("Level Zero result ") + number;
}

}  // namespace bitnet::level_zero
