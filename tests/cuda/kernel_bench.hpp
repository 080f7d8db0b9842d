#pragma once
// Runs kernels of the plugin one by one, on the first device that its driver has.

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bitnet/abi/host.h"
#include "cuda_platform.hpp"
#include "gpu-common/forms/forms.hpp"

namespace bitnet::cuda::test {

class kernel_bench {
 public:
  // Nothing else works if this does not. BITNET_CUDA_WARP_GROUPS=off is heeded. Whether forms agree
  // is not looked at: tests do.
  void open() {
    error_.struct_size = sizeof error_;
    std::string why;
    const char* warp_groups = std::getenv("BITNET_CUDA_WARP_GROUPS");
    permitted may;
    may.use.checks = false;
    may.warp_groups = !warp_groups || std::string_view(warp_groups) != "off";
    const auto log = [](uint32_t level, const std::string& message) {
      if (level == BITNET_LOG_WARN) ADD_FAILURE() << message;
    };
    platform_ = open_platform(usual_driver, log, why, may);
    ASSERT_NE(platform_, nullptr) << why;
    ASSERT_EQ(platform_->open(0, device_, report_), BITNET_OK) << error_.message;
    ASSERT_EQ(device_->make_queue(queue_, report_), BITNET_OK) << error_.message;
  }
  gpu::device& device() { return *device_; }
  forms without;  // that kernels which are added must not use

  template <class T>
  gpu::binding put(const std::vector<T>& values) {
    const uint64_t bytes = (values.size() * sizeof(T) + 3) / 4 * 4;
    std::vector<uint8_t> words(bytes);
    std::memcpy(words.data(), values.data(), values.size() * sizeof(T));
    auto& made = buffers_.emplace_back();
    must(device_->allocate(bytes, gpu::memory_place::device, made, report_));
    must(device_->upload(*made, 0, words.data(), bytes, report_));
    return {made.get(), 0, bytes};
  }
  template <class T>
  std::vector<T> get(const gpu::binding& b) {
    std::vector<T> out(b.bytes / sizeof(T));
    must(device_->download(*b.memory, b.offset, out.data(), b.bytes, report_));
    return out;
  }

  // Behind those that were added before.
  template <class Params>
  void add(const gpu::kernel_spec& spec, const std::vector<gpu::binding>& bindings, const Params& p,
           uint32_t groups_x, uint32_t groups_y) {
    auto& made = kernels_.emplace_back();
    auto& of = static_cast<gpu::device_with_forms&>(*device_);
    must(without.empty() ? of.make_kernel(spec, made, report_)
                         : of.make_kernel_without(without, false, spec, made, report_));
    gpu::command& c = commands_.emplace_back();
    c.run = kernels_.back().get();
    c.bindings = bindings;
    c.params.resize(sizeof p / 4);
    std::memcpy(c.params.data(), &p, sizeof p);
    c.groups_x = groups_x;
    c.groups_y = groups_y;
    c.after = true;
  }
  // A command of the kernel that was added last, which waits for nothing that was added before it:
  // the two may become one launch.
  template <class Params>
  void add_beside(const std::vector<gpu::binding>& bindings, const Params& p, uint32_t groups_x) {
    gpu::command c = commands_.back();
    c.bindings = bindings;
    std::memcpy(c.params.data(), &p, sizeof p);
    c.groups_x = groups_x;
    c.after = false;
    commands_.push_back(std::move(c));
  }
  void run() {
    std::unique_ptr<gpu::recording> made;
    must(device_->record(commands_, false, made, report_));
    if (made) must(queue_->submit(*made, ++value_, report_));
    must(queue_->wait(value_, UINT64_MAX, report_));
    made.reset();
    commands_.clear();
    kernels_.clear();
  }
  // What was put is no longer needed.
  void clear() { buffers_.clear(); }

 private:
  void must(bitnet_status s) { ASSERT_EQ(s, BITNET_OK) << error_.message; }

  bitnet_error error_{};
  sdk::reporter report_{&error_, "test"};
  std::unique_ptr<gpu::platform> platform_;
  std::unique_ptr<gpu::device> device_;
  std::unique_ptr<gpu::queue> queue_;
  std::vector<std::unique_ptr<gpu::buffer>> buffers_;
  std::vector<std::unique_ptr<gpu::kernel>> kernels_;
  std::vector<gpu::command> commands_;
  uint64_t value_ = 0;
};

}  // namespace bitnet::cuda::test
