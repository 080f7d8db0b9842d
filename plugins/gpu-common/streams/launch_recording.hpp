#pragma once
// What recordings have in common whose kernels get one value with all addresses
// (simt/plain_launch.hpp): launches of one kernel that are joined, clocks, and gathered memory.
//
// Host memory  each kernel would read it over the bus. So gather() collects the host memory that
//              commands only read, such as the step's header, in one buffer. The recording copies
//              it to the device, and kernels read the copy.
//
// `Api` is the API's part:
//   context, buffer, kernel, grid, event, joined_launch
//                   types. A buffer is made from a context and a size, and has create(place,
//                   report) and address(); a kernel has `spec` and `form`
//   current         makes the device the calling thread's while it lives, and has entered()
//   grid_for        the grid of a command, with `x` and `y`
//   groups_among    `x` of a command that is one launch with others
//   joins           whether launches of a kernel with this grid can be one
//   is_same         whether two grids are of one function
//   milliseconds    between two events; false if that fails

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "gpu-common/driver.hpp"
#include "gpu-common/kernels.hpp"
#include "gpu-common/simt/plain_launch.hpp"
#include "gpu-common/simt_kernels.hpp"
#include "gpu-common/streams/event_queue.hpp"

namespace bitnet::gpu {

template <class Api>
class launch_recording : public recording {
 public:
  using context = typename Api::context;
  using buffer = typename Api::buffer;
  using kernel = typename Api::kernel;
  using grid = typename Api::grid;

  launch_recording(const context& c, bool timed) : context_(c), timed_(timed) {}
  bool times(std::span<uint64_t> out) const noexcept override {
    if (!timed_ || clock_.empty() || out.size() < clock_.size() - 1) return false;
    const typename Api::current mine(context_);
    if (!mine.entered()) return false;
    for (size_t i = 0; i + 1 < clock_.size(); ++i) {
      float ms = 0;
      if (!Api::milliseconds(context_, clock_[i], clock_[i + 1], ms)) return false;
      out[i] = ms > 0 ? static_cast<uint64_t>(std::lround(double{ms} * 1e6)) : 0;
    }
    return true;
  }
  // Shared, because a wait may still use it after the recording is destroyed.
  const std::shared_ptr<step_time>& took() const noexcept { return took_; }

 protected:
  static const buffer* memory_of(const binding& b) noexcept {
    return static_cast<const buffer*>(b.memory);
  }
  static const kernel& kernel_of(const command& one) noexcept {
    return static_cast<const kernel&>(*one.run);
  }
  auto address_of(const binding& b) const noexcept {
    const auto found = copied_.find(memory_of(b));
    const auto memory =
        found == copied_.end() ? memory_of(b)->address() : facts_->address() + found->second.at;
    return memory + b.offset;
  }

  // Finds the host memory to be gathered and allocates for it; the recording then copies gathered_
  // to facts_, if they are there, before anything else.
  bitnet_status prepare_gathering(std::span<const command> commands, const sdk::reporter& report) {
    find_copied(commands);
    if (copied_.empty()) return BITNET_OK;
    uint64_t bytes = 0;
    for (auto& [from, part] : copied_) {
      part.at = bytes;
      bytes += gathered_bytes_of(part.bytes);
    }
    gathered_ = std::make_unique<buffer>(context_, bytes);
    facts_ = std::make_unique<buffer>(context_, bytes);
    if (bitnet_status s = gathered_->create(memory_place::host, report); sdk::failed(s)) return s;
    return facts_->create(memory_place::device, report);
  }
  // When no earlier launch of this recording still runs.
  void gather() const noexcept {
    for (const auto& [from, part] : copied_)
      std::memcpy(static_cast<uint8_t*>(gathered_->mapped()) + part.at, from->mapped(), part.bytes);
  }
  void forget_gathered() noexcept {
    copied_.clear();
    gathered_.reset();
    facts_.reset();
  }

  grid grid_for(const command& one) const { return Api::grid_for(context_, one); }
  // Returns how many of the next commands can become one launch: adjacent commands of the same
  // kernel that do not wait for each other.
  size_t count_joined(std::span<const command> commands) const {
    if (timed_ || !commands[0].run) return 1;
    const grid first = grid_for(commands[0]);
    const auto joins = [&](const command& one) {
      if (one.run != commands[0].run) return false;
      const grid how = grid_for(one);
      return how.y == 1 && Api::is_same(how, first) && Api::joins(kernel_of(one), how);
    };
    size_t n = 1;
    while (n < commands.size() && n < kernels::most_joined && !commands[n].after &&
           joins(commands[0]) && joins(commands[n]))
      ++n;
    return n;
  }

  // Fills in the value of a launch of several commands and returns its groups in x.
  template <class Describe>  // bitnet_status(const command&, launch&)
  bitnet_status join(std::span<const command> joined, typename Api::joined_launch& values,
                     uint32_t& groups_x, const Describe& describe) const {
    groups_x = 0;
    for (size_t i = 0; i < joined.size(); ++i) {
      if (bitnet_status s = describe(joined[i], values.of[i]); sdk::failed(s)) return s;
      groups_x += Api::groups_among(context_, joined, joined[i]);
      values.ends[i] = groups_x;
    }
    // Unused entries end where the last command ends.
    for (size_t i = joined.size(); i < kernels::most_joined; ++i) values.ends[i] = groups_x;
    return BITNET_OK;
  }
  bitnet_status describe(const command& one, kernels::plain_launch& values,
                         const sdk::reporter& report) const {
    const kernel& run = kernel_of(one);
    if (one.bindings.size() > std::size(values.memory) || one.params.size() > max_params)
      return report.fail(
          BITNET_INTERNAL,
          "%s: %zu bindings and %zu words of parameters; expected at most %zu and %u",
          run.form.function.c_str(), one.bindings.size(), one.params.size(),
          std::size(values.memory), max_params);
    for (size_t i = 0; i < one.bindings.size(); ++i)
      values.memory[i] = std::bit_cast<uint64_t>(address_of(one.bindings[i]));
    std::copy_n(run.spec.constants, std::size(values.constants), values.constants);
    std::copy(one.params.begin(), one.params.end(), values.params);
    return BITNET_OK;
  }

  const context& context_;
  const bool timed_;
  std::unique_ptr<buffer> gathered_, facts_;  // of the host, and of the device
  // Before the first command and behind each, when timed.
  std::vector<typename Api::event> clock_;

 private:
  static bool reads_rotations(kernel_id id, uint32_t b) noexcept {
    return (id == kernel_id::rope && b == 2) ||
           ((id == kernel_id::kv_write || id == kernel_id::attn_token) && b == 4);
  }
  // Finds the host buffers that kernels read and no command writes, with the bytes that they may
  // read.
  void find_copied(std::span<const command> commands) {
    std::vector<const buffer*> others;
    for (const command& one : commands)
      for (uint32_t i = 0; i < one.bindings.size(); ++i) {
        const binding& b = one.bindings[i];
        const buffer* from = memory_of(b);
        if (!from->mapped()) continue;
        const kernel_id id = one.run ? kernel_of(one).spec.id : kernel_id::count;
        const uint64_t end = b.offset + b.bytes;
        if (!one.run || i >= row_of(id).read ||
            end > (reads_rotations(id, i) ? most_gathered_rotations : most_gathered_bytes))
          others.push_back(from);
        else
          copied_[from].bytes = std::max(copied_[from].bytes, end);
      }
    for (const buffer* one : others) copied_.erase(one);
  }

  const std::shared_ptr<step_time> took_ = std::make_shared<step_time>(0);
  // Bytes of a host buffer that are gathered, and their offset in gathered_ and facts_.
  struct gathered_part {
    uint64_t bytes = 0, at = 0;
  };
  std::map<const buffer*, gathered_part> copied_;
};

}  // namespace bitnet::gpu
