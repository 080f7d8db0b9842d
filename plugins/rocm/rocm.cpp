// The rocm backend: gpu-common's table over AMD's HIP runtime.

#include "bitnet/abi/backend.h"
#include "bitnet/abi/note.h"
#include "gpu-common/backend.hpp"
#include "kernel_table.hpp"
#include "platform.hpp"

BITNET_BACKEND_NOTE("rocm", BITNET_BACKEND_VERSION, "org.bitnet", "Apache-2.0",
                    BITNET_NOTE_FIELD("class", "gpu") BITNET_NOTE_FIELD("flags", "hot-swap"))

namespace {

// Settings: "head" is "exact", "fast", which is the same here, or "full"; gpu-common reads it.
// "checks" is "on" or "off".
bitnet_status load(const bitnet::sdk::host& services, const bitnet::gpu::settings& user,
                   std::unique_ptr<bitnet::gpu::platform>& out,
                   const bitnet::sdk::reporter& report) {
  bitnet::gpu::form_use use;
  bitnet_status s = bitnet::gpu::check_head_setting(user, report);
  if (s == BITNET_OK)
    s = bitnet::gpu::read_form_use(services, user, "rocm", bitnet::rocm::optional_forms(), use,
                                   report);
  if (s != BITNET_OK) return s;
  std::string why;
  out = bitnet::rocm::open_platform(
      [&services](uint32_t level, const std::string& message) {
        services.log(level, "rocm", message);
      },
      why, use);
  return out ? BITNET_OK : report.fail(BITNET_UNAVAILABLE, "%s", why.c_str());
}

constexpr bitnet::gpu::author rocm{
    .name = "rocm",
    .version = BITNET_BACKEND_VERSION,
    .vendor = "org.bitnet",
    .license = "Apache-2.0",
    .driver = "ROCm",
    .life_flags = BITNET_LIFE_HOT_SWAP,  // the runtime has threads of its own, and stays loaded
    .load = load,
};

}  // namespace

extern "C" BITNET_BACKEND_EXPORT bitnet_status
BITNET_BACKEND_ENTRY(const bitnet_host_v0* host, const bitnet_open_request* request,
                     bitnet_backend_v0* out, bitnet_error* err) {
  return bitnet::gpu::open_backend(host, request, out, err, rocm);
}
