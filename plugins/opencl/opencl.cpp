// The opencl backend: gpu-common with the OpenCL driver.

#include "bitnet/abi/backend.h"
#include "bitnet/abi/note.h"
#include "gpu-common/backend.hpp"
#include "platform.hpp"

BITNET_BACKEND_NOTE("opencl", BITNET_BACKEND_VERSION, "org.bitnet", "Apache-2.0",
                    BITNET_NOTE_FIELD("class", "gpu") BITNET_NOTE_FIELD("flags", "hot-swap"))

namespace {

using bitnet::opencl::settings;

// Setting "cache": the folder for compiled kernels, or "off".
bitnet_status load(const bitnet::sdk::host& services, const bitnet::gpu::settings& user,
                   std::unique_ptr<bitnet::gpu::platform>& out,
                   const bitnet::sdk::reporter& report) {
  const auto parameter = [&](const char* key) {
    const auto found = user.find(key);
    return found == user.end() ? std::string() : found->second;
  };
  settings wanted{parameter("cache"), [services](uint32_t level, const std::string& message) {
                    services.log(level, "opencl", message);
                  }};
  std::string why;
  out = bitnet::opencl::open_platform(bitnet::opencl::usual_loader, std::move(wanted), why);
  return out ? BITNET_OK : report.fail(BITNET_UNAVAILABLE, "%s", why.c_str());
}

}  // namespace

extern "C" BITNET_BACKEND_EXPORT bitnet_status
BITNET_BACKEND_ENTRY(const bitnet_host_v0* host, const bitnet_open_request* request,
                     bitnet_backend_v0* out, bitnet_error* err) {
  // Drivers start threads and stay loaded: the plugin is neither thread-free nor unloadable.
  static const bitnet::gpu::author author{
      "opencl", BITNET_BACKEND_VERSION, "org.bitnet", "Apache-2.0",
      "OpenCL", BITNET_LIFE_HOT_SWAP,   load};
  return bitnet::gpu::open_backend(host, request, out, err, author);
}
