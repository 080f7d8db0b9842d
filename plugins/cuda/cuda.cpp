// The cuda backend: gpu-common's table over the NVIDIA driver.

#include "bitnet/abi/backend.h"
#include "bitnet/abi/note.h"
#include "cuda_platform.hpp"
#include "gpu-common/backend.hpp"

BITNET_BACKEND_NOTE("cuda", BITNET_BACKEND_VERSION, "org.bitnet", "Apache-2.0",
                    BITNET_NOTE_FIELD("class", "gpu") BITNET_NOTE_FIELD("flags", "hot-swap"))

namespace {

// Settings: "head" selects how logits are computed: "exact" or "fast", which mean the same in this
// backend, or "full"; gpu-common reads it.
// "overlap", "warp_groups" and "checks" are "on" or "off".
bitnet_status load(const bitnet::sdk::host& services, const bitnet::gpu::settings& user,
                   std::unique_ptr<bitnet::gpu::platform>& out,
                   const bitnet::sdk::reporter& report) {
  bitnet::cuda::permitted may;
  bitnet_status s = bitnet::gpu::check_head_setting(user, report);
  if (s == BITNET_OK) s = bitnet::gpu::read_switch(user, "overlap", may.overlap, report);
  if (s == BITNET_OK) s = bitnet::gpu::read_switch(user, "warp_groups", may.warp_groups, report);
  if (s == BITNET_OK)
    s = bitnet::gpu::read_form_use(services, user, "cuda", bitnet::cuda::optional_forms(), may.use,
                                   report);
  if (s != BITNET_OK) return s;
  std::string why;
  out = bitnet::cuda::open_platform(
      bitnet::cuda::usual_driver,
      [&services](uint32_t level, const std::string& message) {
        services.log(level, "cuda", message);
      },
      why, may);
  return out ? BITNET_OK : report.fail(BITNET_UNAVAILABLE, "%s", why.c_str());
}

}  // namespace

extern "C" BITNET_BACKEND_EXPORT bitnet_status
BITNET_BACKEND_ENTRY(const bitnet_host_v0* host, const bitnet_open_request* request,
                     bitnet_backend_v0* out, bitnet_error* err) {
  // The backend declares neither "thread-free" nor "unloadable", because the driver starts threads
  // and stays loaded.
  static const bitnet::gpu::author author{
      "cuda", BITNET_BACKEND_VERSION, "org.bitnet", "Apache-2.0",
      "CUDA", BITNET_LIFE_HOT_SWAP,   load};
  return bitnet::gpu::open_backend(host, request, out, err, author);
}
