#pragma once
// A device, and the code objects that its kernels come from.

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "context.hpp"
#include "gpu-common/streams/stream_device.hpp"
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

// As stream_device.hpp of gpu-common wants it.
struct stream_api {
  using library = rocm::library;
  using device_facts = rocm::device_facts;
  using context = rocm::context;
  using current = rocm::current;
  using buffer = device_buffer;
  using result = hipError_t;
  using address = uint8_t*;

  static constexpr const char* pinned_call = "hipHostMalloc";
  static hipError_t allocate_pinned(const context& c, void*& out, uint64_t bytes) noexcept {
    return c.hip.hipHostMalloc(&out, bytes, hipHostMallocPortable);
  }
  static void free_pinned(const context& c, void* memory) noexcept { c.hip.hipHostFree(memory); }
  static std::string name_of(const context& c, hipError_t one) { return c.hip.name_of(one); }
  static bitnet_status send(const context& c, uint8_t* to, const void* data, uint64_t bytes,
                            const sdk::reporter& report) {
    return c.check(c.hip.hipMemcpyHtoDAsync(to, data, bytes, c.transfers), "hipMemcpyHtoDAsync",
                   report);
  }
  static bitnet_status fetch(const context& c, void* data, uint8_t* from, uint64_t bytes,
                             const sdk::reporter& report) {
    return c.check(c.hip.hipMemcpyDtoHAsync(data, from, bytes, c.transfers), "hipMemcpyDtoHAsync",
                   report);
  }
};

class device final : public gpu::stream_device<stream_api> {
 public:
  // `log` outlives the device.
  device(const library& hip, const device_facts& facts, gpu::form_use use, const log_function& log)
      : stream_device(hip, facts, std::move(use), log) {}
  ~device() override;
  bitnet_status open(const sdk::reporter& report) override;

  bitnet_status status(bitnet_device_status& out, const sdk::reporter& report) const override;
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

  std::unique_ptr<smi> management_;  // nullptr where there is none
  std::map<std::string, hipModule_t> modules_;
  // The runtime may read a code object as long as its module is loaded.
  std::vector<std::vector<uint8_t>> images_;
};

}  // namespace bitnet::rocm
