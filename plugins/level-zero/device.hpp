#pragma once
// An open device: a context, and a list whose transfers are complete when they are appended.

#include <memory>

#include "events.hpp"
#include "sysman.hpp"

namespace bitnet::level_zero {

class device final : public gpu::device {
 public:
  device(const library& calls, const device_facts& facts, const sysman& facts_now) noexcept
      : context_(calls, facts), clocks_(context_, true), sysman_(facts_now) {}
  ~device() override;
  device(const device&) = delete;
  device& operator=(const device&) = delete;
  bitnet_status open(const sdk::reporter& report);

  const gpu::facts& describe() const noexcept override { return context_.facts.about; }
  bitnet_status status(bitnet_device_status& out, const sdk::reporter& report) const override;
  bitnet_status allocate(uint64_t bytes, gpu::memory_place where, std::unique_ptr<gpu::buffer>& out,
                         const sdk::reporter& report) override;
  bitnet_status upload(gpu::buffer& to, uint64_t offset, const void* data, uint64_t bytes,
                       const sdk::reporter& report) override;
  bitnet_status download(const gpu::buffer& from, uint64_t offset, void* data, uint64_t bytes,
                         const sdk::reporter& report) override;
  bitnet_status make_kernel(const gpu::kernel_spec& spec, std::unique_ptr<gpu::kernel>& out,
                            const sdk::reporter& report) override;
  bitnet_status record(std::span<const gpu::command> commands, bool timed,
                       std::unique_ptr<gpu::recording>& out, const sdk::reporter& report) override;
  bitnet_status make_queue(std::unique_ptr<gpu::queue>& out, const sdk::reporter& report) override;

 private:
  bitnet_status copy(void* to, const void* from, uint64_t bytes, const sdk::reporter& report) const;

  context context_;
  events clocks_;  // for timed recordings
  const sysman& sysman_;
  ze_command_list_handle_t transfers_ = nullptr;
};

}  // namespace bitnet::level_zero
