#pragma once
// A list of commands as a graph of the driver, launched by one call.
//
// Kernels would read what the host wrote, the step's header above all, over the bus, each for
// itself. So memory of the host that the commands only read is gathered when the step is launched,
// copied to the device by one command, and they read the copy.

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "cuda_device.hpp"
#include "gpu-common/event_queue.hpp"

namespace bitnet::cuda {

class recording final : public gpu::recording {
 public:
  // `of_device` outlives it.
  recording(const context& c, bool timed, overlap& of_device)
      : context_(c), timed_(timed), of_device_(of_device) {}
  ~recording() override;
  // The context is current, here and below.
  bitnet_status build(std::span<const gpu::command> commands, const sdk::reporter& report);
  bitnet_status launch_on(CUstream stream, const sdk::reporter& report);

  bool times(std::span<uint64_t> out) const noexcept override;
  const std::shared_ptr<gpu::step_time>& took() const noexcept { return took_; }

 private:
  void clear() noexcept;
  bitnet_status make(std::span<const gpu::command> commands, bool overlap,
                     const sdk::reporter& report);
  void find_copied(std::span<const gpu::command> commands);
  bitnet_status copy_from_host(const sdk::reporter& report);
  void gather() const noexcept;
  CUdeviceptr address_of(const gpu::binding& b) const noexcept;
  size_t count_joined(std::span<const gpu::command> commands) const;
  grid grid_for(const gpu::command& one) const;
  bitnet_status add(std::span<const gpu::command> joined, const sdk::reporter& report);
  bitnet_status add_kernel(std::span<const gpu::command> joined, const sdk::reporter& report);
  bitnet_status describe(const gpu::command& one, launch& values, const sdk::reporter& report);
  // launch::boxes of a kernel whose tile has some.
  bitnet_status describe_boxes(const gpu::command& one, const tile_form& tile, launch& values,
                               const sdk::reporter& report);
  bitnet_status add_beside(CUgraphNode made, const sdk::reporter& report);
  bitnet_status instantiate(const sdk::reporter& report);
  bool may_be_refusal(CUresult result) const noexcept;
  // Of a call that may fail because of `overlap_`: nothing is reported then, and refused_ is set.
  bitnet_status check_refusal(CUresult result, const char* call, const sdk::reporter& report);
  bitnet_status add_copies(const gpu::command& one, const sdk::reporter& report);
  bitnet_status add_copy(CUdeviceptr from, CUdeviceptr to, uint64_t bytes,
                         const sdk::reporter& report);
  bitnet_status add_clock(const sdk::reporter& report);
  void next_level();
  void forget_commands() noexcept { std::vector<gpu::command>().swap(commands_); }

  const context& context_;
  const bool timed_;
  overlap& of_device_;
  const std::shared_ptr<gpu::step_time> took_ = std::make_shared<gpu::step_time>(0);
  bool overlap_ = false;  // kernels may be launched while those before them compute
  bool beside_ = false;   // some are
  CUresult refused_ = CUDA_SUCCESS;
  // To make the graph once more; until it was launched with kernels beside others.
  std::vector<gpu::command> commands_;
  CUgraph graph_ = nullptr;
  CUgraphExec ready_ = nullptr;
  // A command that waits begins a level; what stands in a level waits for all of the level before.
  struct level {
    std::vector<CUgraphNode> nodes;
    bool kernels_only = true;
  };
  level before_, level_;
  // So many bytes of memory are gathered, and lie there in the two that follow: of the host, of the
  // device.
  struct gathered_part {
    uint64_t bytes = 0, at = 0;
  };
  std::map<const device_buffer*, gathered_part> copied_;
  std::unique_ptr<device_buffer> gathered_, facts_;
  std::vector<CUevent> clock_;  // before each command and behind the last, when timed
};

}  // namespace bitnet::cuda
