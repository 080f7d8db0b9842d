#pragma once
// Kernels with their arguments set, and copies, enqueued anew for each submission.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device.hpp"

namespace bitnet::opencl {

class recording final : public gpu::recording {
 public:
  recording(context& c, bool timed) : context_(c), timed_(timed) {}
  ~recording() override;
  // Appends a command whose function is `name` of `program`.
  bitnet_status add(const gpu::command& one, cl_program program, const std::string& name,
                    uint32_t group_size, const sdk::reporter& report);

  // Appends copies from one buffer to another.
  void add_copies(const gpu::command& one);

  bool times(std::span<uint64_t> out) const noexcept override;

  // Enqueues all commands; *done is the event of the last one, which the caller releases.
  bitnet_status enqueue(cl_event* done, const sdk::reporter& report);

 private:
  struct step {
    cl_kernel kernel = nullptr;
    size_t global[2] = {}, local[2] = {};  // threads
    // Without a kernel:
    cl_mem from = nullptr, to = nullptr;
    std::vector<gpu::copy_range> copies;
  };
  void use(device_buffer* memory);
  cl_int enqueue_step(const step& s, cl_event* event) const;
  void forget_events() noexcept;

  context& context_;
  bool timed_;
  std::vector<step> steps_;
  std::vector<device_buffer*> host_buffers_;  // used by commands
  std::vector<cl_event> events_;              // by step, if timed
};

}  // namespace bitnet::opencl
