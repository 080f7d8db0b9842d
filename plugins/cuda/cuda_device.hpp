#pragma once
// A device: its primary context, a stream for uploads and downloads, and the loaded modules of its
// kernels.
//
// Threads  any: every public call makes the context current on the calling thread.

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device_facts.hpp"
#include "gpu-common/streams/stream_device.hpp"
#include "kernel_table.hpp"
#include "library.hpp"
#include "nvml.hpp"

namespace bitnet::cuda {

// The driver context that all objects of a device share.
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
  // Converts the driver's result of `call` to the contract's status.
  bitnet_status check(CUresult result, const char* call, const sdk::reporter& report) const;
  // Waits until the uploads and downloads of the stream are done.
  bitnet_status finish_transfers(const sdk::reporter& report) const;
};

// Makes the context current on this thread for the lifetime of the object.
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
  void* mapped() const noexcept override { return pinned_; }
  CUdeviceptr address() const noexcept { return address_; }

 private:
  const context& context_;
  uint64_t bytes_;
  void* pinned_ = nullptr;  // address in host memory; memory_place::host only
  CUdeviceptr address_ = 0;
};

class kernel final : public gpu::kernel {
 public:
  gpu::kernel_spec spec;
  kernel_form form;
  CUfunction function = nullptr, tiled[most_tiled_forms] = {};
  // The same functions for several joined launches; nullptr if a kernel has none.
  CUfunction joined = nullptr, joined_tiled[most_tiled_forms] = {};
  uint32_t most_looks = 0;  // launch::most_looks
};

// Looks at a barrier before a bounded kernel gives up. Each sleeps up to some microseconds.
inline constexpr uint32_t most_looks = 1u << 16;

// Whether the graphs of a device may start a kernel while the kernels before it still compute.
// Becomes false when the driver refuses such a graph.
//
// Threads  any: one thread may launch while another one records.
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

// As stream_device.hpp of gpu-common wants it.
struct stream_api {
  using library = cuda::library;
  using device_facts = cuda::device_facts;
  using context = cuda::context;
  using current = cuda::current;
  using buffer = device_buffer;
  using result = CUresult;
  using address = CUdeviceptr;

  static constexpr const char* pinned_call = "cuMemHostAlloc";
  static CUresult allocate_pinned(const context& c, void*& out, uint64_t bytes) noexcept {
    return c.cu.cuMemHostAlloc(&out, bytes, 0);
  }
  static void free_pinned(const context& c, void* memory) noexcept { c.cu.cuMemFreeHost(memory); }
  static std::string name_of(const context& c, CUresult one) { return c.cu.name_of(one); }
  static bitnet_status send(const context& c, CUdeviceptr to, const void* data, uint64_t bytes,
                            const sdk::reporter& report) {
    return c.check(c.cu.cuMemcpyHtoDAsync(to, data, bytes, c.transfers), "cuMemcpyHtoDAsync",
                   report);
  }
  static bitnet_status fetch(const context& c, void* data, CUdeviceptr from, uint64_t bytes,
                             const sdk::reporter& report) {
    return c.check(c.cu.cuMemcpyDtoHAsync(data, from, bytes, c.transfers), "cuMemcpyDtoHAsync",
                   report);
  }
};

class device final : public gpu::stream_device<stream_api> {
 public:
  // `watcher` may be null; `log` outlives the device.
  device(const library& cu, const device_facts& facts, gpu::form_use use, gpu::watcher* watcher,
         const log_function& log)
      : stream_device(cu, facts, std::move(use), log),
        watcher_(watcher),
        overlap_(context_, log, facts.overlaps) {}
  ~device() override;
  bitnet_status open(const sdk::reporter& report) override;

  uint32_t rounded_products() const noexcept override {
    return describe().capabilities.precisions & rounded_products_without(off());
  }
  uint32_t rounded_heads() const noexcept override {
    return describe().capabilities.rounded_heads & rounded_heads_without(off());
  }
  gpu::watcher* watcher() const noexcept override { return watcher_; }
  bitnet_status status(bitnet_device_status& out, const sdk::reporter& report) const override;
  bitnet_status make_kernel_without(const forms& off, bool bounded, const gpu::kernel_spec& spec,
                                    std::unique_ptr<gpu::kernel>& out,
                                    const sdk::reporter& report) override;
  bitnet_status record(std::span<const gpu::command> commands, bool timed,
                       std::unique_ptr<gpu::recording>& out, const sdk::reporter& report) override;
  bitnet_status make_queue(std::unique_ptr<gpu::queue>& out, const sdk::reporter& report) override;

 private:
  bitnet_status find_module(const image& from, CUmodule& out, const sdk::reporter& report);
  bitnet_status find_function(const image& from, const std::string& name, uint32_t shared_bytes,
                              CUfunction& out, const sdk::reporter& report);
  bitnet_status find_functions(const image& from, const std::string& name, uint32_t shared_bytes,
                               bool joins, CUfunction& one, CUfunction& joined,
                               const sdk::reporter& report);

  gpu::watcher* const watcher_;
  overlap overlap_;
  std::unique_ptr<nvml> management_;  // nullptr if NVML is missing or does not know the device
  std::map<const image*, CUmodule> modules_;
};

}  // namespace bitnet::cuda
