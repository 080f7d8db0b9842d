// The webgpu backend: gpu-common with a WebGPU library.

#include "bitnet/abi/backend.h"
#include "bitnet/abi/note.h"
#include "gpu-common/backend.hpp"
#include "platform.hpp"

BITNET_BACKEND_NOTE("webgpu", BITNET_BACKEND_VERSION, "org.bitnet", "Apache-2.0",
                    BITNET_NOTE_FIELD("class", "gpu") BITNET_NOTE_FIELD("flags", "hot-swap"))

namespace {

using bitnet::sdk::failed;

// 0 or 1; `out` stays if the user did not set it.
bitnet_status switch_of(const char* key, const std::string& value, bool& out,
                        const bitnet::sdk::reporter& report) {
  if (value.empty()) return BITNET_OK;
  if (value != "0" && value != "1")
    return report.fail(BITNET_UNAVAILABLE, "setting %s is '%.40s'; expected 0 or 1", key,
                       value.c_str());
  out = value == "1";
  return BITNET_OK;
}

// Settings: "library": the file to open. "subgroups", "dot_product" = 0: as if the device, or the
// language, had none; the results are the same. "software" = 0: adapters that compute on the CPU
// are left out.
bitnet_status load(const bitnet::sdk::host& services, const bitnet::gpu::settings& user,
                   std::unique_ptr<bitnet::gpu::platform>& out,
                   const bitnet::sdk::reporter& report) {
  const auto parameter = [&](std::string_view key) {
    const auto found = user.find(key);
    return found == user.end() ? std::string() : found->second;
  };
  bitnet::webgpu::wishes asked;
  if (bitnet_status s = switch_of("subgroups", parameter("subgroups"), asked.subgroups, report);
      failed(s))
    return s;
  if (bitnet_status s =
          switch_of("dot_product", parameter("dot_product"), asked.packed_dot, report);
      failed(s))
    return s;
  if (bitnet_status s = switch_of("software", parameter("software"), asked.software, report);
      failed(s))
    return s;
  std::string why;
  auto calls = bitnet::webgpu::open_library(parameter("library"), why);
  if (!calls) return report.fail(BITNET_UNAVAILABLE, "%s", why.c_str());
  auto made = std::make_unique<bitnet::webgpu::platform>(std::move(calls), services, asked);
  if (bitnet_status s = made->start(report); failed(s)) return s;
  out = std::move(made);
  return BITNET_OK;
}

constexpr bitnet::gpu::author webgpu{
    .name = "webgpu",
    .version = BITNET_BACKEND_VERSION,
    .vendor = "org.bitnet",
    .license = "Apache-2.0",
    .driver = "WebGPU",
    .life_flags = BITNET_LIFE_HOT_SWAP,  // drivers start threads and stay loaded
    .load = load,
};

}  // namespace

extern "C" BITNET_BACKEND_EXPORT bitnet_status
BITNET_BACKEND_ENTRY(const bitnet_host_v0* host, const bitnet_open_request* request,
                     bitnet_backend_v0* out, bitnet_error* err) {
  return bitnet::gpu::open_backend(host, request, out, err, webgpu);
}
