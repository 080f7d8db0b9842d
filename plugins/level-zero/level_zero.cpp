// The level-zero backend: gpu-common with the Level Zero driver.

#include "bitnet/abi/backend.h"
#include "bitnet/abi/note.h"
#include "gpu-common/backend.hpp"
#include "platform.hpp"

BITNET_BACKEND_NOTE("level-zero", BITNET_BACKEND_VERSION, "org.bitnet", "Apache-2.0",
                    BITNET_NOTE_FIELD("class", "gpu") BITNET_NOTE_FIELD("flags", "hot-swap"))

namespace {

// Setting "sysman" = 1: ZES_ENABLE_SYSMAN=1 is set, so that older loaders report the device's
// state, too.
bitnet_status load(const bitnet::sdk::host& services, const bitnet::gpu::settings& user,
                   std::unique_ptr<bitnet::gpu::platform>& out,
                   const bitnet::sdk::reporter& report) {
  const auto parameter = [&](std::string_view key) {
    const auto found = user.find(key);
    return found == user.end() ? std::string() : found->second;
  };
  const std::string enabled = parameter("sysman");
  if (!enabled.empty() && enabled != "0" && enabled != "1")
    return report.fail(BITNET_UNAVAILABLE, "setting sysman is '%.40s'; expected 0 or 1",
                       enabled.c_str());
  std::string why;
  const bitnet::level_zero::library* const calls = bitnet::level_zero::library_of_process(why);
  if (!calls) return report.fail(BITNET_UNAVAILABLE, "%s", why.c_str());
  auto made = std::make_unique<bitnet::level_zero::platform>(*calls, enabled == "1");
  const auto warn = [&](const std::string& text) {
    services.log(BITNET_LOG_WARN, "level-zero", text);
  };
  if (!made->start(warn, why)) return report.fail(BITNET_UNAVAILABLE, "%s", why.c_str());
  out = std::move(made);
  return BITNET_OK;
}

constexpr bitnet::gpu::author level_zero{
    .name = "level-zero",
    .version = BITNET_BACKEND_VERSION,
    .vendor = "org.bitnet",
    .license = "Apache-2.0",
    .driver = "Level Zero",
    .life_flags = BITNET_LIFE_HOT_SWAP,  // drivers start threads and stay loaded
    .load = load,
};

}  // namespace

extern "C" BITNET_BACKEND_EXPORT bitnet_status
BITNET_BACKEND_ENTRY(const bitnet_host_v0* host, const bitnet_open_request* request,
                     bitnet_backend_v0* out, bitnet_error* err) {
  return bitnet::gpu::open_backend(host, request, out, err, level_zero);
}
