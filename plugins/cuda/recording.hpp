#pragma once
// A list of commands as a CUDA graph, which one call launches.
//
// Host memory  each kernel would read it over the bus. So launch_on() gathers the host memory that
//              commands only read, such as the step's header, into one buffer; the graph copies it
//              to the device, and kernels read the copy.

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "cuda_device.hpp"
#include "gpu-common/event_queue.hpp"

namespace bitnet::cuda {

class recording final : public gpu::recording {
 public:
  // `of_device` outlives the recording.
  recording(const context& c, bool timed, overlap& of_device)
      : context_(c), timed_(timed), of_device_(of_device) {}
  ~recording() override;
  // The caller of build() and launch_on() has made the context current.
  bitnet_status build(std::span<const gpu::command> commands, const sdk::reporter& report);
  bitnet_status launch_on(CUstream stream, const sdk::reporter& report);

  bool times(std::span<uint64_t> out) const noexcept override;
  // Shared, because a wait may still use it after the recording is destroyed.
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
  // Fills in launch::boxes for a form whose tile has boxes.
  bitnet_status describe_boxes(const gpu::command& one, const tile_form& tile, launch& values,
                               const sdk::reporter& report);
  bitnet_status add_beside(CUgraphNode made, const sdk::reporter& report);
  bitnet_status instantiate(const sdk::reporter& report);
  bool may_be_refusal(CUresult result) const noexcept;
  // Checks a call that may fail because of `overlap_`: such a failure sets refused_ and is not
  // reported.
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
  bool overlap_ = false;  // kernels may start while the kernels before them compute
  bool beside_ = false;   // the graph has such kernels
  CUresult refused_ = CUDA_SUCCESS;
  // For building the graph again without overlap; kept until a launch with overlap succeeded.
  std::vector<gpu::command> commands_;
  CUgraph graph_ = nullptr;
  CUgraphExec ready_ = nullptr;
  // A command with `after` begins a level. The nodes of a level wait for all nodes of the previous
  // level.
  struct level {
    std::vector<CUgraphNode> nodes;
    bool kernels_only = true;
  };
  level before_, level_;
  // Bytes of a host buffer that are gathered, and their offset in gathered_ (host) and facts_
  // (device).
  struct gathered_part {
    uint64_t bytes = 0, at = 0;
  };
  std::map<const device_buffer*, gathered_part> copied_;
  std::unique_ptr<device_buffer> gathered_, facts_;
  std::vector<CUevent> clock_;  // before each command and behind the last, when timed
};

}  // namespace bitnet::cuda
