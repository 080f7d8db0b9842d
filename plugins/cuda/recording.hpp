#pragma once
// A list of commands as a graph of the driver, launched by one call.

#include <span>
#include <vector>

#include "cuda_device.hpp"

namespace bitnet::cuda {

class recording final : public gpu::recording {
 public:
  recording(const context& c, bool timed) : context_(c), timed_(timed) {}
  ~recording() override;
  // The context is current.
  bitnet_status build(std::span<const gpu::command> commands, const sdk::reporter& report);
  bitnet_status launch_on(CUstream stream, const sdk::reporter& report) const;

  bool times(std::span<uint64_t> out) const noexcept override;

 private:
  bitnet_status add(const gpu::command& one, const sdk::reporter& report);
  bitnet_status add_kernel(const gpu::command& one, const sdk::reporter& report);
  bitnet_status add_copies(const gpu::command& one, const sdk::reporter& report);
  bitnet_status add_copy(CUdeviceptr from, CUdeviceptr to, uint64_t bytes,
                         const sdk::reporter& report);
  bitnet_status add_clock(const sdk::reporter& report);
  void next_level();

  const context& context_;
  bool timed_;
  CUgraph graph_ = nullptr;
  CUgraphExec ready_ = nullptr;
  // A command that waits begins a level; what stands in a level waits for all of the level before.
  std::vector<CUgraphNode> before_, level_;
  std::vector<CUevent> clock_;  // before each command and behind the last, when timed
};

}  // namespace bitnet::cuda
