// The cuda backend: gpu-common's table over the NVIDIA driver.

#include "bitnet/abi/backend.h"
#include "bitnet/abi/note.h"
#include "cuda_platform.hpp"
#include "gpu-common/backend.hpp"

BITNET_BACKEND_NOTE("cuda", BITNET_BACKEND_VERSION, "org.bitnet", "Apache-2.0",
                    BITNET_NOTE_FIELD("class", "gpu") BITNET_NOTE_FIELD("flags", "hot-swap"))

namespace {

// The forms whose ids the host's list names.
bitnet::cuda::forms named_forms(const std::string& list) {
  bitnet::cuda::forms out;
  for (std::string& one : bitnet::cuda::optional_forms())
    if (("," + list + ",").find("," + one + ".cuda,") != std::string::npos)
      out.push_back(std::move(one));
  return out;
}

// Settings: "head" selects how logits are computed: "exact" or "fast", which mean the same in this
// backend, or "full"; gpu-common reads it.
// "overlap", "warp_groups" and "checks" are "on" or "off".
bitnet_status load(const bitnet::sdk::host& services, const bitnet::gpu::settings& user,
                   std::unique_ptr<bitnet::gpu::platform>& out,
                   const bitnet::sdk::reporter& report) {
  const auto parameter = [&user](const char* key) {
    const auto found = user.find(key);
    return found == user.end() ? std::string() : found->second;
  };
  const std::string head = parameter("head");
  if (!head.empty() && head != "exact" && head != "fast" && head != "full")
    return report.fail(BITNET_UNAVAILABLE, "setting head is '%.64s'; expected exact, fast or full",
                       head.c_str());
  const std::string overlap = parameter("overlap"), warp_groups = parameter("warp_groups");
  const std::string checks = parameter("checks");
  bitnet::cuda::permitted may;
  const struct {
    const char* key;
    const std::string& value;
    bool& permitted;
  } switches[] = {{"overlap", overlap, may.overlap},
                  {"warp_groups", warp_groups, may.warp_groups},
                  {"checks", checks, may.checks}};
  for (const auto& one : switches) {
    if (!one.value.empty() && one.value != "on" && one.value != "off")
      return report.fail(BITNET_UNAVAILABLE, "setting %s is '%.64s'; expected on or off", one.key,
                         one.value.c_str());
    one.permitted = one.value != "off";
  }
  may.off = named_forms(parameter("disable"));
  may.bounded = parameter("purpose") == "probe";
  // The child of the probe compared them, on the same driver and devices.
  if (parameter("purpose") == "load" && parameter("probed") == "yes") may.checks = false;
  if (may.checks && !may.bounded)
    services.log(
        BITNET_LOG_INFO, "cuda",
        "no probe compared the forms of kernels; this process does when a device is opened");
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
