#include "library.hpp"

#include <dlfcn.h>

namespace bitnet::webgpu {
namespace {

// The names that makers and distributions use.
constexpr const char* usual_names[] = {"libwgpu_native.so", "libwebgpu_dawn.so", "libwebgpu.so"};

// The first version of wgpu-native whose webgpu.h matches standard.hpp.
constexpr uint32_t oldest_wgpu_native = 29;

// RTLD_LOCAL: Dawn exports thousands of symbols that must not collide with others.
void* open_any(const std::string& file, std::string& opened, std::string& why) {
  if (!file.empty()) {
    opened = file;
    if (file[0] != '/' && file.find('/') != std::string::npos) {  // relative to the current folder
      why = "BITNET_WEBGPU_LIBRARY (or the setting webgpu.library) is '" + file +
            "'; expected a whole path, which begins with /, or a name that the linker finds";
      return nullptr;
    }
    void* const found = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!found)
      why = "BITNET_WEBGPU_LIBRARY (or the setting webgpu.library) is '" + file +
            "', which cannot be opened: " + dlerror() +
            "; name a library of wgpu-native or Dawn by its whole path";
    return found;
  }
  for (const char* name : usual_names) {
    opened = name;
    if (void* const found = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return found;
  }
  why =
      "no library of WebGPU is found (libwgpu_native.so, libwebgpu_dawn.so or libwebgpu.so): "
      "install one, such as wgpu-native, and name it in BITNET_WEBGPU_LIBRARY; Python's package "
      "wgpu brings one along";
  return nullptr;
}

std::string dotted(uint32_t version) {
  return std::to_string(version >> 24) + "." + std::to_string(version >> 16 & 255) + "." +
         std::to_string(version >> 8 & 255) + "." + std::to_string(version & 255);
}

// Why the library's header differs from standard.hpp, or "".
std::string refusal_of(void* opened, const char* missing, std::string& version) {
  using version_call = uint32_t (*)();
  if (const auto ask = reinterpret_cast<version_call>(dlsym(opened, "wgpuGetVersion"))) {
    const uint32_t number = ask();
    version = dotted(number);
    if (number >> 24 < oldest_wgpu_native)
      return "is wgpu-native " + version + ", " + std::to_string(oldest_wgpu_native) +
             " or newer is needed; update it";
  }
  for (const char* mark : marks_of_header)
    if (!missing && !dlsym(opened, mark)) missing = mark;
  if (!missing) return "";
  return std::string("has no ") + missing +
         ": it is no library of WebGPU, or its webgpu.h is older than wgpu-native 29's; update it";
}

}  // namespace

std::unique_ptr<library> open_library(const std::string& file, std::string& why) {
  auto out = std::make_unique<library>();
  void* const opened = open_any(file, out->file, why);
  if (!opened) return nullptr;
  const char* missing = nullptr;
#define BITNET_WEBGPU_FIND(name, result, parameters)                              \
  out->name = reinterpret_cast<decltype(out->name)>(dlsym(opened, "wgpu" #name)); \
  if (!out->name && !missing) missing = "wgpu" #name;
  BITNET_WEBGPU_CALLS(BITNET_WEBGPU_FIND)
#undef BITNET_WEBGPU_FIND
  const std::string refusal = refusal_of(opened, missing, out->version);
  if (refusal.empty()) return out;
  why = out->file + " " + refusal;
  dlclose(opened);
  return nullptr;
}

}  // namespace bitnet::webgpu
