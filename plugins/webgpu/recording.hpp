#pragma once
// Kernels with their bindings set, and copies, encoded anew for each submission: WebGPU has no
// command buffer that can be submitted twice. Kernels of a pass see the writes of earlier ones.
//
// Host memory  the parts that commands use are sent before the commands; the parts that they
//              wrote are then copied to a buffer that can be mapped, and from there to the host.

#include <memory>
#include <span>
#include <vector>

#include "memory.hpp"
#include "pipeline.hpp"

namespace bitnet::webgpu {

class recording final : public gpu::recording {
 public:
  // `tick_ns` of a timestamp; 0: the device has none.
  recording(const connection& d, double tick_ns) noexcept : device_(d), tick_ns_(tick_ns) {}
  ~recording() override;
  recording(const recording&) = delete;
  recording& operator=(const recording&) = delete;

  // `alignment` is that of a uniform binding's offset.
  bitnet_status make(std::span<const gpu::command> commands, bool timed, uint32_t alignment,
                     const sdk::reporter& report);
  bool times(std::span<uint64_t> out) const noexcept override;

  // The queue calls these under the runtime's lock. finish() may be called once `done` is given.
  bitnet_status submit(const std::shared_ptr<answer>& done, const sdk::reporter& report);
  bitnet_status finish(const sdk::reporter& report);

 private:
  struct step {
    const pipeline* run = nullptr;
    bind_group_handle bindings = nullptr;
    uint32_t groups_x = 1, groups_y = 1;
    // Without a kernel:
    buffer_handle from = nullptr, to = nullptr;
    std::vector<gpu::copy_range> copies;
  };
  struct carried {
    memory* of;
    extent what;
    uint64_t staged;  // offset in the staging buffer, for returned parts
  };

  bitnet_status add(const gpu::command& one, uint64_t params_at, const sdk::reporter& report);
  void add_copies(const gpu::command& one);
  void note(const gpu::binding& b, bool written);
  void settle_extents();
  bitnet_status make_buffers(uint32_t commands, uint32_t slot, bool timed, uint64_t bounced,
                             const sdk::reporter& report);
  command_buffer_handle encode() const;
  void encode_kernel(command_encoder_handle to, const step& s, uint32_t at,
                     compute_pass_encoder_handle& pass) const;
  void encode_copies(command_encoder_handle to, const step& s) const;

  const connection& device_;
  const double tick_ns_;
  std::vector<step> steps_;
  std::vector<carried> sent_, returned_;
  std::unique_ptr<memory> params_, bounce_, staging_, ticks_;
  query_set_handle queries_ = nullptr;
  uint64_t returned_bytes_ = 0;  // of staging_, before the timestamps
  std::vector<uint64_t> times_;
};

}  // namespace bitnet::webgpu
