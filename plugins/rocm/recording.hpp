#pragma once
// A list of commands that a stream is given one after the other.
//
// Kernels would read what the host wrote, the step's header above all, over the bus, each for
// itself. So memory of the host that the commands only read is gathered when the step is launched,
// copied to the device by one command, and they read the copy.

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "device.hpp"
#include "gpu-common/event_queue.hpp"

namespace bitnet::rocm {

class recording final : public gpu::recording {
 public:
  recording(const context& c, bool timed) : context_(c), timed_(timed) {}
  ~recording() override;
  // The device is the thread's, here and below.
  bitnet_status build(std::span<const gpu::command> commands, const sdk::reporter& report);
  bitnet_status launch_on(hipStream_t stream, const sdk::reporter& report);

  bool times(std::span<uint64_t> out) const noexcept override;
  const std::shared_ptr<gpu::step_time>& took() const noexcept { return took_; }

 private:
  // A launch of a kernel, or of several as one, or a copy where there is no function.
  struct step {
    hipFunction_t function = nullptr;
    joined_launch values{};  // or its first launch alone
    uint32_t x = 1, y = 1, shared_bytes = 0;
    uint8_t *from = nullptr, *to = nullptr;
    uint64_t bytes = 0;
    bool ends = false;  // the command; some are several copies
  };

  void find_copied(std::span<const gpu::command> commands);
  bitnet_status copy_from_host(const sdk::reporter& report);
  void gather() const noexcept;
  uint8_t* address_of(const gpu::binding& b) const noexcept;
  grid grid_for(const gpu::command& one) const;
  size_t count_joined(std::span<const gpu::command> commands) const;
  bitnet_status describe(const gpu::command& one, launch& values,
                         const sdk::reporter& report) const;
  bitnet_status add_kernel(std::span<const gpu::command> joined, const sdk::reporter& report);
  void add_copies(const gpu::command& one);
  bitnet_status run(step& one, hipStream_t stream, const sdk::reporter& report) const;
  bitnet_status read_clock(size_t i, hipStream_t stream, const sdk::reporter& report) const;

  const context& context_;
  const bool timed_;
  const std::shared_ptr<gpu::step_time> took_ = std::make_shared<gpu::step_time>(0);
  std::vector<step> steps_;
  // So many bytes of memory are gathered, and lie there in the two that follow: of the host, of the
  // device.
  struct gathered_part {
    uint64_t bytes = 0, at = 0;
  };
  std::map<const device_buffer*, gathered_part> copied_;
  std::unique_ptr<device_buffer> gathered_, facts_;
  std::vector<hipEvent_t> clock_;  // before the first command and behind each, when timed
};

}  // namespace bitnet::rocm
