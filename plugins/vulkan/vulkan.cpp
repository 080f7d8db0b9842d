// The vulkan backend: gpu-common with the Vulkan driver.

#include <optional>

#include "bitnet/abi/backend.h"
#include "bitnet/abi/note.h"
#include "gpu-common/backend.hpp"
#include "platform.hpp"

BITNET_BACKEND_NOTE("vulkan", BITNET_BACKEND_VERSION, "org.bitnet", "Apache-2.0",
                    BITNET_NOTE_FIELD("class", "gpu") BITNET_NOTE_FIELD("flags", "hot-swap"))

namespace {

using bitnet::sdk::failed;

// 0 or 1; nothing if the user did not set it.
bitnet_status switch_of(const std::string& name, const std::string& value, std::optional<bool>& out,
                        const bitnet::sdk::reporter& report) {
  if (value.empty()) return BITNET_OK;
  if (value != "0" && value != "1")
    return report.fail(BITNET_UNAVAILABLE, "setting %s is '%.40s'; expected 0 or 1", name.c_str(),
                       value.c_str());
  out = value == "1";
  return BITNET_OK;
}

// Settings: "fences" = 1: waits for steps with fences, as on devices without timeline semaphores.
// "subgroups" = 0: kernels exchange values through memory. "dot_product" = 0: kernels multiply
// bytes one by one; 1: four at a time even where that is not faster. The results are the same.
// "disable" names kernels that the host found wrong here.
bitnet_status load(const bitnet::sdk::host& services, const bitnet::gpu::settings& user,
                   std::unique_ptr<bitnet::gpu::platform>& out,
                   const bitnet::sdk::reporter& report) {
  const auto parameter = [&](std::string_view key) {
    const auto found = user.find(key);
    return found == user.end() ? std::string() : found->second;
  };
  std::optional<bool> fences, subgroups, dot_product;
  if (bitnet_status s = switch_of("fences", parameter("fences"), fences, report); failed(s))
    return s;
  if (bitnet_status s = switch_of("subgroups", parameter("subgroups"), subgroups, report);
      failed(s))
    return s;
  if (bitnet_status s = switch_of("dot_product", parameter("dot_product"), dot_product, report);
      failed(s))
    return s;
  using dot = bitnet::vulkan::wishes::dot;
  bitnet::vulkan::wishes asked;
  asked.timeline = !fences.value_or(false);
  asked.subgroups = subgroups.value_or(true);
  if (dot_product) asked.dot_product = *dot_product ? dot::always : dot::never;
  auto made = std::make_unique<bitnet::vulkan::platform>(services, asked);
  if (bitnet_status s = made->start(report); failed(s)) return s;
  out = std::move(made);
  return BITNET_OK;
}

constexpr bitnet::gpu::author vulkan{
    .name = "vulkan",
    .version = BITNET_BACKEND_VERSION,
    .vendor = "org.bitnet",
    .license = "Apache-2.0",
    .driver = "Vulkan",
    .life_flags = BITNET_LIFE_HOT_SWAP,  // drivers start threads and stay loaded
    .load = load,
};

}  // namespace

extern "C" BITNET_BACKEND_EXPORT bitnet_status
BITNET_BACKEND_ENTRY(const bitnet_host_v0* host, const bitnet_open_request* request,
                     bitnet_backend_v0* out, bitnet_error* err) {
  return bitnet::gpu::open_backend(host, request, out, err, vulkan);
}
