#pragma once
// Memory of the host that stays in place ("pinned"), through which weights go to the device: it
// fetches one half by itself while the next bytes are copied into the other. From other memory the
// driver copies first, into such memory of its own, or page by page.

#include <cstdint>

#include "bitnet/sdk/guard.hpp"
#include "library.hpp"

namespace bitnet::cuda {

struct context;

class staging {
 public:
  // gpu-common brings 4 MiB at a time and waits for them: of four pieces three are copied while the
  // one before is under way. What is small is not worth a copy more.
  static constexpr uint64_t piece = uint64_t{1} << 20, small = uint64_t{64} << 10;

  // `c` and `log` outlive it.
  staging(const context& c, const log_function& log) : context_(c), log_(log) {}
  ~staging();
  staging(const staging&) = delete;
  staging& operator=(const staging&) = delete;
  // Done when it returns, and `data` is not used any more even if it failed. The context is
  // current. One call at a time.
  bitnet_status upload(CUdeviceptr to, const void* data, uint64_t bytes,
                       const sdk::reporter& report);

 private:
  bitnet_status open(const sdk::reporter& report);
  bitnet_status in_pieces(CUdeviceptr to, const uint8_t* data, uint64_t bytes,
                          const sdk::reporter& report);
  bitnet_status send(CUdeviceptr to, const void* data, uint64_t bytes, const sdk::reporter& report);

  const context& context_;
  const log_function& log_;
  void* memory_ = nullptr;  // two pieces, from the first upload that is not small
  bool refused_ = false;    // there is none to be had
};

}  // namespace bitnet::cuda
