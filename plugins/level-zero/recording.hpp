#pragma once
// Kernels with their arguments set, and copies, appended anew for each submission.

#include <memory>
#include <vector>

#include "context.hpp"
#include "events.hpp"

namespace bitnet::level_zero {

// SPIR-V of one kernel, compiled for the device.
class compiled_kernel final : public gpu::kernel {
 public:
  compiled_kernel(const context& c, const gpu::kernel_spec& s) noexcept : spec(s), context_(c) {}
  ~compiled_kernel() override;
  compiled_kernel(const compiled_kernel&) = delete;
  compiled_kernel& operator=(const compiled_kernel&) = delete;

  bitnet_status compile(const sdk::reporter& report);
  ze_module_handle_t handle() const noexcept { return handle_; }

  const gpu::kernel_spec spec;

 private:
  bitnet_status refused(ze_result_t result, ze_module_build_log_handle_t log,
                        const sdk::reporter& report) const;

  const context& context_;
  ze_module_handle_t handle_ = nullptr;
};

class recording final : public gpu::recording {
 public:
  // `clocks` are events with time stamps; nullptr: no timing.
  recording(const context& c, events* clocks) noexcept : context_(c), clocks_(clocks) {}
  ~recording() override;

  bitnet_status add(const gpu::command& one, const sdk::reporter& report);
  bool times(std::span<uint64_t> out) const noexcept override;

  // Appends all commands. If it fails, the commands appended before still run.
  bitnet_status append(ze_command_list_handle_t list, const sdk::reporter& report);

 private:
  struct step {
    ze_kernel_handle_t kernel = nullptr;
    ze_group_count_t groups{};
    bool after = false;
    // Without a kernel:
    uint8_t *from = nullptr, *to = nullptr;
    std::vector<gpu::copy_range> copies;
    std::vector<std::unique_ptr<lent_event>> clocks;  // one for the kernel, or for each copy
  };
  bitnet_status add_kernel(step& s, const gpu::command& one, const sdk::reporter& report);
  bitnet_status append_step(step& s, ze_command_list_handle_t list, const sdk::reporter& report);

  const context& context_;
  events* clocks_;
  std::vector<step> steps_;
  bool ran_ = false;
};

}  // namespace bitnet::level_zero
