#pragma once
// A device: one context and one in-order queue for all commands.
//
// Host memory is allocated here and used by OpenCL in place (CL_MEM_USE_HOST_PTR). It is mapped
// whenever no submission runs, so that its address stays. A submission unmaps the buffers that its
// commands use, and maps them again after the commands.

#include <memory>
#include <vector>

#include "binary_cache.hpp"
#include "bitnet/sdk/handle.hpp"
#include "compiler.hpp"
#include "device_facts.hpp"
#include "gpu-common/driver.hpp"

namespace bitnet::opencl {

// The device's facts in gpu-common's form.
gpu::facts common_facts(const device_facts& device);

// State that all objects of a device share.
struct context {
  const library& cl;
  const device_facts& facts;
  const log_function& log;
  cl_context handle = nullptr;
  cl_command_queue commands = nullptr;
  bool timed = false;  // the queue measures times

  context(const library& calls, const device_facts& device, const log_function& where)
      : cl(calls), facts(device), log(where) {}
  ~context();
  context(const context&) = delete;
  context& operator=(const context&) = delete;

  bitnet_status open(const sdk::reporter& report);
  // Replaces the queue by one that measures times; the old queue finishes first.
  bitnet_status start_timing(const sdk::reporter& report);
  // Converts the driver's status of `call` to the contract's status.
  bitnet_status fail(const char* call, cl_int status, const sdk::reporter& report) const;
};

class device_buffer final : public gpu::buffer {
 public:
  device_buffer(const context& c, uint64_t bytes) : context_(c), bytes_(bytes) {}
  ~device_buffer() override;
  bitnet_status create(gpu::memory_place where, const sdk::reporter& report);

  uint64_t size() const noexcept override { return bytes_; }
  void* mapped() const noexcept override { return host_.data(); }
  cl_mem handle() const noexcept { return handle_; }

  // Enqueue only, without waiting. Between unmap and map OpenCL owns the memory.
  cl_int unmap();
  cl_int map(cl_event* done);

 private:
  const context& context_;
  uint64_t bytes_;
  sdk::memory host_;  // memory_place::host only; outlives handle_
  cl_mem handle_ = nullptr;
  bool is_mapped_ = false;
};

class device final : public gpu::device {
 public:
  device(const library& cl, const device_facts& facts, const log_function& log,
         const std::string& cache)
      : context_(cl, facts, log), common_(common_facts(facts)), cache_(cache) {}
  bitnet_status open(const sdk::reporter& report) { return context_.open(report); }

  const gpu::facts& describe() const noexcept override { return common_; }
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
  context context_;
  gpu::facts common_;
  binary_cache cache_;
};

}  // namespace bitnet::opencl
