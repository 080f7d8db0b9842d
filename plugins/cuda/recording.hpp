#pragma once
// A list of commands as a graph of the driver, launched by one call.
//
// Kernels would read what the host wrote, the step's header above all, over the bus, each for
// itself. So small memory of the host that the commands only read is copied to the device first,
// and they read the copy.

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "cuda_device.hpp"

namespace bitnet::cuda {

class recording final : public gpu::recording {
 public:
  // With `overlap` kernels may be launched while those before them compute.
  recording(const context& c, bool timed, bool overlap)
      : context_(c), timed_(timed), overlap_(overlap) {}
  ~recording() override;
  // The context is current.
  bitnet_status build(std::span<const gpu::command> commands, const sdk::reporter& report);
  // What the driver answered if build() failed only because of `overlap`; nothing is reported then.
  CUresult refused() const noexcept { return refused_; }
  bitnet_status launch_on(CUstream stream, const sdk::reporter& report) const;

  bool times(std::span<uint64_t> out) const noexcept override;

 private:
  void find_copied(std::span<const gpu::command> commands);
  bitnet_status copy_from_host(const sdk::reporter& report);
  CUdeviceptr address_of(const gpu::binding& b) const noexcept;
  bitnet_status add(const gpu::command& one, const sdk::reporter& report);
  bitnet_status add_kernel(const gpu::command& one, const sdk::reporter& report);
  // launch::boxes of a kernel whose tile has some.
  bitnet_status describe_boxes(const gpu::command& one, const tile_form& tile, launch& values,
                               const sdk::reporter& report);
  bitnet_status add_beside(CUgraphNode made, const sdk::reporter& report);
  bitnet_status instantiate(const sdk::reporter& report);
  // Of a call that may fail because of `overlap`.
  bitnet_status check_refusal(CUresult result, const char* call, const sdk::reporter& report);
  bitnet_status add_copies(const gpu::command& one, const sdk::reporter& report);
  bitnet_status add_copy(CUdeviceptr from, CUdeviceptr to, uint64_t bytes,
                         const sdk::reporter& report);
  bitnet_status add_clock(const sdk::reporter& report);
  void next_level();

  const context& context_;
  const bool timed_, overlap_;
  bool beside_ = false;  // some kernel may be
  CUresult refused_ = CUDA_SUCCESS;
  CUgraph graph_ = nullptr;
  CUgraphExec ready_ = nullptr;
  // A command that waits begins a level; what stands in a level waits for all of the level before.
  struct level {
    std::vector<CUgraphNode> nodes;
    bool kernels_only = true;
  };
  level before_, level_;
  std::map<const device_buffer*, std::unique_ptr<device_buffer>> copied_;
  std::vector<CUevent> clock_;  // before each command and behind the last, when timed
};

}  // namespace bitnet::cuda
