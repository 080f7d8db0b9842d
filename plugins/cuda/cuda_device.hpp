#pragma once
// A device: its primary context, a stream for what the host brings and takes, and the modules that
// its kernels come from. Every call makes the context current for itself: callers' threads are any.

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device_facts.hpp"
#include "gpu-common/driver.hpp"
#include "kernel_table.hpp"
#include "library.hpp"
#include "nvml.hpp"
#include "staging.hpp"

namespace bitnet::cuda {

// What all objects of a device share.
struct context {
  const library& cu;
  const device_facts& facts;
  CUcontext handle = nullptr;
  CUstream transfers = nullptr;

  context(const library& calls, const device_facts& device) : cu(calls), facts(device) {}
  ~context();
  context(const context&) = delete;
  context& operator=(const context&) = delete;

  bitnet_status open(const sdk::reporter& report);
  // The contract's status for what the driver answered to `call`.
  bitnet_status check(CUresult result, const char* call, const sdk::reporter& report) const;
  // Until what the host brings and takes is done.
  bitnet_status finish_transfers(const sdk::reporter& report) const;
};

// The context is the thread's while this lives.
class current {
 public:
  explicit current(const context& c) noexcept
      : context_(c), result_(c.cu.cuCtxPushCurrent(c.handle)) {}
  ~current() {
    CUcontext popped = nullptr;
    if (entered()) context_.cu.cuCtxPopCurrent(&popped);
  }
  current(const current&) = delete;
  current& operator=(const current&) = delete;
  bool entered() const noexcept { return result_ == CUDA_SUCCESS; }
  bitnet_status check(const sdk::reporter& report) const {
    return context_.check(result_, "cuCtxPushCurrent", report);
  }

 private:
  const context& context_;
  const CUresult result_;
};

class device_buffer final : public gpu::buffer {
 public:
  device_buffer(const context& c, uint64_t bytes) : context_(c), bytes_(bytes) {}
  ~device_buffer() override;
  bitnet_status create(gpu::memory_place where, const sdk::reporter& report);

  uint64_t size() const noexcept override { return bytes_; }
  void* mapped() const noexcept override { return host_; }
  CUdeviceptr address() const noexcept { return address_; }

 private:
  const context& context_;
  uint64_t bytes_;
  void* host_ = nullptr;  // pinned; memory_place::host only
  CUdeviceptr address_ = 0;
};

class kernel final : public gpu::kernel {
 public:
  gpu::kernel_spec spec;
  kernel_form form;
  CUfunction function = nullptr, tiled[most_tiled_forms] = {};
  // The same of several launches; nullptr where there is none.
  CUfunction joined = nullptr, joined_tiled[most_tiled_forms] = {};
  uint32_t most_looks = 0;  // launch::most_looks
};

// Whether kernels of a device's graphs may be launched while those before them compute: until its
// driver refuses one of the graphs. From any thread: one may launch while another records.
class overlap {
 public:
  overlap(const context& c, const log_function& log, bool wanted)
      : context_(c), log_(log), wanted_(wanted) {}
  bool wanted() const noexcept { return wanted_; }
  void refuse(CUresult answer);

 private:
  const context& context_;
  const log_function& log_;
  std::atomic<bool> wanted_;
};

class device final : public gpu::device {
 public:
  // `watcher` may be null; `log` outlives the device.
  device(const library& cu, const device_facts& facts, gpu::watcher* watcher,
         const log_function& log)
      : context_(cu, facts),
        watcher_(watcher),
        log_(log),
        off_(facts.warp_groups ? forms{} : forms_by_warp_groups()),
        checks_(facts.checks),
        overlap_(context_, log, facts.overlaps),
        staging_(context_, log) {}
  ~device() override;
  bitnet_status open(const sdk::reporter& report);

  const gpu::facts& describe() const noexcept override { return context_.facts.common; }
  gpu::watcher* watcher() const noexcept override { return watcher_; }
  bitnet_status status(bitnet_device_status& out, const sdk::reporter& report) const override;
  bitnet_status allocate(uint64_t bytes, gpu::memory_place where, std::unique_ptr<gpu::buffer>& out,
                         const sdk::reporter& report) override;
  bitnet_status upload(gpu::buffer& to, uint64_t offset, const void* data, uint64_t bytes,
                       const sdk::reporter& report) override;
  bitnet_status download(const gpu::buffer& from, uint64_t offset, void* data, uint64_t bytes,
                         const sdk::reporter& report) override;
  bitnet_status make_kernel(const gpu::kernel_spec& spec, std::unique_ptr<gpu::kernel>& out,
                            const sdk::reporter& report) override {
    return make_kernel(spec, off_, out, report);
  }
  // Without some forms.
  bitnet_status make_kernel(const gpu::kernel_spec& spec, const forms& off,
                            std::unique_ptr<gpu::kernel>& out, const sdk::reporter& report);
  bitnet_status record(std::span<const gpu::command> commands, bool timed,
                       std::unique_ptr<gpu::recording>& out, const sdk::reporter& report) override;
  bitnet_status make_queue(std::unique_ptr<gpu::queue>& out, const sdk::reporter& report) override;

 private:
  bitnet_status find_module(const image& from, CUmodule& out, const sdk::reporter& report);
  // Goes without forms that have other bits than what they stand in for.
  bitnet_status compare_forms(const sdk::reporter& report);
  bitnet_status find_function(const image& from, const std::string& name, uint32_t shared_bytes,
                              CUfunction& out, const sdk::reporter& report);
  bitnet_status find_functions(const image& from, const std::string& name, uint32_t shared_bytes,
                               bool joins, CUfunction& one, CUfunction& joined,
                               const sdk::reporter& report);

  context context_;
  gpu::watcher* const watcher_;
  const log_function& log_;
  forms off_;  // that the device has not, or that were found to differ
  const bool checks_;
  overlap overlap_;
  staging staging_;
  std::unique_ptr<nvml> management_;  // nullptr where there is none
  std::map<const image*, CUmodule> modules_;
};

}  // namespace bitnet::cuda
