#pragma once
// A device, and the code objects that its kernels come from.

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "context.hpp"
#include "gpu-common/forms.hpp"
#include "kernel_table.hpp"
#include "memory.hpp"
#include "smi.hpp"

namespace bitnet::rocm {

class kernel final : public gpu::kernel {
 public:
  gpu::kernel_spec spec;
  kernel_form form;
  // nullptr where there is none, here and below.
  hipFunction_t function = nullptr, joined = nullptr;
  hipFunction_t several[most_several] = {};  // as kernel_form::several
};

class device final : public gpu::device_with_forms {
 public:
  // `log` outlives the device.
  device(const library& hip, const device_facts& facts, gpu::form_use use, const log_function& log)
      : device_with_forms(std::move(use), log), context_(hip, facts), staging_(context_, log) {}
  ~device() override;
  bitnet_status open(const sdk::reporter& report) override;

  const gpu::facts& describe() const noexcept override { return context_.facts.common; }
  bitnet_status status(bitnet_device_status& out, const sdk::reporter& report) const override;
  bitnet_status allocate(uint64_t bytes, gpu::memory_place where, std::unique_ptr<gpu::buffer>& out,
                         const sdk::reporter& report) override;
  bitnet_status upload(gpu::buffer& to, uint64_t offset, const void* data, uint64_t bytes,
                       const sdk::reporter& report) override;
  bitnet_status download(const gpu::buffer& from, uint64_t offset, void* data, uint64_t bytes,
                         const sdk::reporter& report) override;
  // No kernel of this backend waits for a barrier: all are bounded.
  bitnet_status make_kernel_without(const forms& off, bool bounded, const gpu::kernel_spec& spec,
                                    std::unique_ptr<gpu::kernel>& out,
                                    const sdk::reporter& report) override;
  bitnet_status record(std::span<const gpu::command> commands, bool timed,
                       std::unique_ptr<gpu::recording>& out, const sdk::reporter& report) override;
  bitnet_status make_queue(std::unique_ptr<gpu::queue>& out, const sdk::reporter& report) override;

 private:
  bitnet_status find_module(const std::string& part, hipModule_t& out, const sdk::reporter& report);
  bitnet_status find_function(const std::string& part, const std::string& name, hipFunction_t& out,
                              const sdk::reporter& report);
  bitnet_status find_functions(kernel& of, const sdk::reporter& report);

  context context_;
  staging staging_;
  std::unique_ptr<smi> management_;  // nullptr where there is none
  std::map<std::string, hipModule_t> modules_;
  // The runtime may read a code object as long as its module is loaded.
  std::vector<std::vector<uint8_t>> images_;
};

}  // namespace bitnet::rocm
