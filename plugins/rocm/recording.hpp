#pragma once
// A list of commands that a stream is given one after the other.

#include <span>
#include <vector>

#include "device.hpp"
#include "gpu-common/streams/launch_recording.hpp"

namespace bitnet::rocm {

// As launch_recording.hpp of gpu-common wants it.
struct launch_api {
  using context = rocm::context;
  using current = rocm::current;
  using buffer = device_buffer;
  using kernel = rocm::kernel;
  using grid = rocm::grid;
  using event = hipEvent_t;
  using joined_launch = rocm::joined_launch;

  static grid grid_for(const context& c, const gpu::command& one) noexcept;
  static uint32_t groups_among(const context& c, std::span<const gpu::command>,
                               const gpu::command& one) noexcept {
    return grid_for(c, one).x;
  }
  static bool joins(const kernel& run, const grid& how) noexcept {
    return how.several < 0 && run.form.joins;
  }
  static bool is_same(const grid& a, const grid& b) noexcept { return a.several == b.several; }
  static bool milliseconds(const context& c, hipEvent_t from, hipEvent_t to, float& out) noexcept {
    return c.hip.hipEventElapsedTime(&out, from, to) == hipSuccess;
  }
};

class recording final : public gpu::launch_recording<launch_api> {
 public:
  using launch_recording::launch_recording;
  ~recording() override;
  // The device is the thread's, here and below.
  bitnet_status build(std::span<const gpu::command> commands, const sdk::reporter& report);
  bitnet_status launch_on(hipStream_t stream, const sdk::reporter& report);

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

  bitnet_status add_kernel(std::span<const gpu::command> joined, const sdk::reporter& report);
  void add_copies(const gpu::command& one);
  bitnet_status run(step& one, hipStream_t stream, const sdk::reporter& report) const;
  bitnet_status read_clock(size_t i, hipStream_t stream, const sdk::reporter& report) const;

  std::vector<step> steps_;
};

}  // namespace bitnet::rocm
