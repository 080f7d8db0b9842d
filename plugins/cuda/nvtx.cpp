#include "nvtx.hpp"

#include <cstdlib>

#ifdef BITNET_CUDA_NVTX
// Disables NVTX's static injection of a tool: its symbol would have to be exported by the plugin.
#define NVTX_SUPPORT_STATIC_INJECTION_LIBRARY 0
#include <nvtx3/nvToolsExt.h>
#endif

namespace bitnet::cuda {
namespace {

constexpr const char* variable = "NVTX_INJECTION64_PATH";

#ifdef BITNET_CUDA_NVTX
class tool final : public gpu::watcher {
 public:
  // The first NVTX call of the plugin loads the tool. Without a tool it returns no domain.
  tool() noexcept : domain_(nvtxDomainCreateA("bitnet")) {}

  bool is_there() const noexcept { return domain_ != nullptr; }
  void begin(const char* what) noexcept override {
    nvtxEventAttributes_t range{};
    range.version = NVTX_VERSION;
    range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    range.messageType = NVTX_MESSAGE_TYPE_ASCII;
    range.message.ascii = what;
    nvtxDomainRangePushEx(domain_, &range);
  }
  void end() noexcept override { nvtxDomainRangePop(domain_); }

 private:
  const nvtxDomainHandle_t domain_;
};
#endif

}  // namespace

gpu::watcher* find_watcher(const log_function& log) {
  const char* path = secure_getenv(variable);
  if (!path || !*path) return nullptr;
#ifdef BITNET_CUDA_NVTX
  static tool loaded;
  if (loaded.is_there()) return &loaded;
  log(BITNET_LOG_WARN, std::string(variable) + " is '" + path +
                           "', which is not the library of a tool for ranges of NVTX 3; name such "
                           "a library, or unset it");
#else
  log(BITNET_LOG_WARN, std::string(variable) +
                           " is set, but this build has no ranges; unset it, or build with "
                           "nvtx3/nvToolsExt.h (cuda-nvtx of the CUDA toolkit)");
#endif
  return nullptr;
}

}  // namespace bitnet::cuda
