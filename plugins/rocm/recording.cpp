#include "recording.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

namespace bitnet::rocm {
namespace {

const device_buffer* memory_of(const gpu::binding& b) noexcept {
  return static_cast<const device_buffer*>(b.memory);
}

}  // namespace

recording::~recording() {
  if (clock_.empty()) return;
  const current mine(context_);
  for (hipEvent_t e : clock_) context_.hip.hipEventDestroy(e);
}

uint8_t* recording::address_of(const gpu::binding& b) const noexcept {
  const auto found = copied_.find(memory_of(b));
  uint8_t* memory =
      found == copied_.end() ? memory_of(b)->address() : facts_->address() + found->second.at;
  return memory + b.offset;
}

// Memory of the host that kernels read and nothing here writes: as much of it as they may read.
void recording::find_copied(std::span<const gpu::command> commands) {
  constexpr uint64_t most = uint64_t{1} << 20;  // bytes: what is larger is hardly read as a whole
  std::vector<const device_buffer*> others;
  for (const gpu::command& one : commands)
    for (uint32_t i = 0; i < one.bindings.size(); ++i) {
      const gpu::binding& b = one.bindings[i];
      const device_buffer* from = memory_of(b);
      if (!from->mapped()) continue;
      const bool written =
          !one.run || i >= gpu::row_of(static_cast<const kernel&>(*one.run).spec.id).read;
      const uint64_t end = b.offset + b.bytes;
      if (written || end > most)
        others.push_back(from);
      else
        copied_[from].bytes = std::max(copied_[from].bytes, end);
    }
  for (const device_buffer* one : others) copied_.erase(one);
}

bitnet_status recording::copy_from_host(const sdk::reporter& report) {
  if (copied_.empty()) return BITNET_OK;
  uint64_t bytes = 0;
  for (auto& [from, part] : copied_) {
    part.at = bytes;
    bytes += (part.bytes + 255) / 256 * 256;  // aligned as memory of its own is
  }
  gathered_ = std::make_unique<device_buffer>(context_, bytes);
  facts_ = std::make_unique<device_buffer>(context_, bytes);
  if (bitnet_status s = gathered_->create(gpu::memory_place::host, report); sdk::failed(s))
    return s;
  return facts_->create(gpu::memory_place::device, report);
}

// By the thread that launches: no launch of this recording is under way.
void recording::gather() const noexcept {
  for (const auto& [from, part] : copied_)
    std::memcpy(static_cast<uint8_t*>(gathered_->mapped()) + part.at, from->mapped(), part.bytes);
}

bitnet_status recording::build(std::span<const gpu::command> commands,
                               const sdk::reporter& report) {
  find_copied(commands);
  if (bitnet_status s = copy_from_host(report); sdk::failed(s)) return s;
  size_t count = 0;
  for (size_t i = 0; i < commands.size(); ++count) {
    const size_t n = timed_ ? 1 : count_joined(commands.subspan(i));
    if (!commands[i].run)
      add_copies(commands[i]);
    else if (bitnet_status s = add_kernel(commands.subspan(i, n), report); sdk::failed(s))
      return s;
    i += n;
  }
  if (!timed_) return BITNET_OK;
  clock_.reserve(count + 1);
  while (clock_.size() < count + 1) {
    hipEvent_t made = nullptr;
    if (bitnet_status s = context_.check(context_.hip.hipEventCreateWithFlags(&made, 0),
                                         "hipEventCreateWithFlags", report);
        sdk::failed(s))
      return s;
    clock_.push_back(made);
  }
  return BITNET_OK;
}

grid recording::grid_for(const gpu::command& one) const {
  const auto& run = static_cast<const kernel&>(*one.run);
  return grid_of(run.form, run.spec, one.params.data(), one.groups_x, one.groups_y,
                 context_.facts.lanes);
}

// How many of the next commands one launch can be: neighbours of one kernel that do not wait for
// each other.
size_t recording::count_joined(std::span<const gpu::command> commands) const {
  const auto joins = [&](const gpu::command& one) {
    if (one.run != commands[0].run) return false;
    const grid how = grid_for(one);
    return how.y == 1 && how.several < 0;
  };
  if (!commands[0].run || !static_cast<const kernel&>(*commands[0].run).form.joins ||
      !joins(commands[0]))
    return 1;
  size_t n = 1;
  while (n < commands.size() && n < most_joined && !commands[n].after && joins(commands[n])) ++n;
  return n;
}

bitnet_status recording::describe(const gpu::command& one, launch& values,
                                  const sdk::reporter& report) const {
  const auto& run = static_cast<const kernel&>(*one.run);
  if (one.bindings.size() > std::size(values.memory) || one.params.size() > gpu::max_params)
    return report.fail(BITNET_INTERNAL, "%s: %zu bindings and %zu words of parameters",
                       run.form.function.c_str(), one.bindings.size(), one.params.size());
  for (size_t i = 0; i < one.bindings.size(); ++i)
    values.memory[i] = reinterpret_cast<uint64_t>(address_of(one.bindings[i]));
  std::copy_n(run.spec.constants, std::size(values.constants), values.constants);
  std::copy(one.params.begin(), one.params.end(), values.params);
  return BITNET_OK;
}

// One launch, or several of one kernel that are one.
bitnet_status recording::add_kernel(std::span<const gpu::command> joined,
                                    const sdk::reporter& report) {
  const auto& run = static_cast<const kernel&>(*joined[0].run);
  const grid how = grid_for(joined[0]);
  step made;
  made.x = 0;
  for (size_t i = 0; i < joined.size(); ++i) {
    if (bitnet_status s = describe(joined[i], made.values.of[i], report); sdk::failed(s)) return s;
    made.x += grid_for(joined[i]).x;
    made.values.ends[i] = made.x;
  }
  // Nothing is behind the last.
  for (size_t i = joined.size(); i < most_joined; ++i) made.values.ends[i] = made.x;
  made.y = how.y;
  made.function = joined.size() > 1 ? run.joined
                  : how.several < 0 ? run.function
                                    : run.several[static_cast<size_t>(how.several)];
  made.shared_bytes = how.several < 0 ? run.form.shared_bytes : 0;
  made.ends = true;
  steps_.push_back(made);
  return BITNET_OK;
}

void recording::add_copies(const gpu::command& one) {
  // Of whole buffers: the bindings' offsets do not count.
  const device_buffer* from = memory_of(one.bindings[0]);
  const device_buffer* to = memory_of(one.bindings[1]);
  for (const gpu::copy_range& r : one.copies) {
    step made;
    made.from = from->address() + r.from;
    made.to = to->address() + r.to;
    made.bytes = r.bytes;
    steps_.push_back(made);
  }
  if (one.copies.empty()) steps_.emplace_back();  // a command without any work
  steps_.back().ends = true;
}

bitnet_status recording::run(step& one, hipStream_t stream, const sdk::reporter& report) const {
  const library& hip = context_.hip;
  if (one.function) {
    void* parameters[] = {&one.values};  // copied by the call; a launch is what it begins with
    return context_.check(
        hip.hipModuleLaunchKernel(one.function, one.x, one.y, 1, group_threads, 1, 1,
                                  one.shared_bytes, stream, parameters, nullptr),
        "hipModuleLaunchKernel", report);
  }
  if (one.bytes == 0) return BITNET_OK;
  return context_.check(hip.hipMemcpyDtoDAsync(one.to, one.from, one.bytes, stream),
                        "hipMemcpyDtoDAsync", report);
}

bitnet_status recording::read_clock(size_t i, hipStream_t stream,
                                    const sdk::reporter& report) const {
  return context_.check(context_.hip.hipEventRecord(clock_[i], stream), "hipEventRecord", report);
}

bitnet_status recording::launch_on(hipStream_t stream, const sdk::reporter& report) {
  if (gathered_) {
    gather();
    if (bitnet_status s =
            context_.check(context_.hip.hipMemcpyHtoDAsync(facts_->address(), gathered_->mapped(),
                                                           gathered_->size(), stream),
                           "hipMemcpyHtoDAsync", report);
        sdk::failed(s))
      return s;
  }
  size_t clocks = 0;
  if (timed_)
    if (bitnet_status s = read_clock(clocks++, stream, report); sdk::failed(s)) return s;
  for (step& one : steps_) {
    if (bitnet_status s = run(one, stream, report); sdk::failed(s)) return s;
    if (!timed_ || !one.ends) continue;
    if (bitnet_status s = read_clock(clocks++, stream, report); sdk::failed(s)) return s;
  }
  return BITNET_OK;
}

bool recording::times(std::span<uint64_t> out) const noexcept {
  if (!timed_ || clock_.empty() || out.size() < clock_.size() - 1) return false;
  const current mine(context_);
  if (!mine.entered()) return false;
  for (size_t i = 0; i + 1 < clock_.size(); ++i) {
    float ms = 0;
    if (context_.hip.hipEventElapsedTime(&ms, clock_[i], clock_[i + 1]) != hipSuccess) return false;
    out[i] = ms > 0 ? static_cast<uint64_t>(std::lround(double{ms} * 1e6)) : 0;
  }
  return true;
}

}  // namespace bitnet::rocm
