// The vulkan backend: what plugins/gpu-common makes of a Vulkan driver.

#include "bitnet/abi/backend.h"
#include "bitnet/abi/note.h"
#include "gpu-common/backend.hpp"
#include "platform.hpp"

#define BITNET_VULKAN_VERSION "0.1.0"

BITNET_BACKEND_NOTE("vulkan", BITNET_VULKAN_VERSION, "org.bitnet", "Apache-2.0",
                    BITNET_NOTE_FIELD("flags", "hot-swap"))

namespace {

using bitnet::sdk::failed;

// Settings: "fences", 1: waits for steps with fences, as on devices without timeline semaphores.
// "disable" names kernels that the host has found wrong here.
bitnet_status load(const bitnet::sdk::host& services, const bitnet::gpu::settings& user,
                   std::unique_ptr<bitnet::gpu::platform>& out,
                   const bitnet::sdk::reporter& report) {
  const auto parameter = [&](std::string_view key) {
    const auto found = user.find(key);
    return found == user.end() ? std::string() : found->second;
  };
  const std::string fences = parameter("fences");
  if (!fences.empty() && fences != "0" && fences != "1")
    return report.fail(BITNET_UNAVAILABLE, "setting fences is '%.40s'; expected 0 or 1",
                       fences.c_str());
  auto made = std::make_unique<bitnet::vulkan::platform>(services, fences != "1");
  if (bitnet_status s = made->start(report); failed(s)) return s;
  out = std::move(made);
  return BITNET_OK;
}

constexpr bitnet::gpu::author vulkan{
    .name = "vulkan",
    .version = BITNET_VULKAN_VERSION,
    .vendor = "org.bitnet",
    .license = "Apache-2.0",
    .driver = "Vulkan",
    .life_flags = BITNET_LIFE_HOT_SWAP,  // drivers have threads of their own, and stay loaded
    .load = load,
};

}  // namespace

extern "C" BITNET_BACKEND_EXPORT bitnet_status
BITNET_BACKEND_ENTRY(const bitnet_host_v0* host, const bitnet_open_request* request,
                     bitnet_backend_v0* out, bitnet_error* err) {
  return bitnet::gpu::open_backend(host, request, out, err, vulkan);
}
