#pragma once
// A list of commands as a CUDA graph, which one call launches.

#include <span>
#include <vector>

#include "cuda_device.hpp"
#include "gpu-common/streams/launch_recording.hpp"

namespace bitnet::cuda {

// As launch_recording.hpp of gpu-common wants it.
struct launch_api {
  using context = cuda::context;
  using current = cuda::current;
  using buffer = device_buffer;
  using kernel = cuda::kernel;
  using grid = cuda::grid;
  using event = CUevent;
  using joined_launch = cuda::joined_launch;

  static grid grid_for(const context& c, const gpu::command& one) noexcept;
  static uint32_t groups_among(const context& c, std::span<const gpu::command> joined,
                               const gpu::command& one) noexcept;
  static bool joins(const kernel& run, const grid& how) noexcept {
    return how.tiled ? how.tiled->tile.joins : run.form.joins;
  }
  static bool is_same(const grid& a, const grid& b) noexcept { return a.tiled == b.tiled; }
  static bool milliseconds(const context& c, CUevent from, CUevent to, float& out) noexcept {
    return c.cu.cuEventElapsedTime(&out, from, to) == CUDA_SUCCESS;
  }
};

class recording final : public gpu::launch_recording<launch_api> {
 public:
  // `of_device` outlives the recording.
  recording(const context& c, bool timed, overlap& of_device)
      : launch_recording(c, timed), of_device_(of_device) {}
  ~recording() override;
  // The caller of build() and launch_on() has made the context current.
  bitnet_status build(std::span<const gpu::command> commands, const sdk::reporter& report);
  bitnet_status launch_on(CUstream stream, const sdk::reporter& report);

 private:
  void clear() noexcept;
  bitnet_status make(std::span<const gpu::command> commands, bool overlap,
                     const sdk::reporter& report);
  bitnet_status add(std::span<const gpu::command> joined, const sdk::reporter& report);
  bitnet_status add_kernel(std::span<const gpu::command> joined, const sdk::reporter& report);
  bitnet_status describe(const gpu::command& one, launch& values,
                         const sdk::reporter& report) const;
  // Fills in launch::boxes for a form whose tile has boxes.
  bitnet_status describe_boxes(const gpu::command& one, const tile_form& tile, launch& values,
                               const sdk::reporter& report) const;
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

  overlap& of_device_;
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
};

}  // namespace bitnet::cuda
