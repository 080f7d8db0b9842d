#pragma once
// A device of an adapter, with every feature and limit that the adapter offers.

#include "adapter.hpp"
#include "gpu-common/driver.hpp"
#include "memory.hpp"

namespace bitnet::webgpu {

class device final : public gpu::device {
 public:
  device(const runtime& on, const adapter& mine) : adapter_(mine), connection_(on) {
    connection_.name = mine.about.name;
  }

  bitnet_status open(const sdk::reporter& report);

  const gpu::facts& describe() const noexcept override { return adapter_.about; }
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
  const adapter adapter_;
  connection connection_;
};

}  // namespace bitnet::webgpu
