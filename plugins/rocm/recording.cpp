#include "recording.hpp"

namespace bitnet::rocm {

grid launch_api::grid_for(const context& c, const gpu::command& one) noexcept {
  const auto& run = static_cast<const kernel&>(*one.run);
  return grid_of(run.form, run.spec, one.params.data(), one.groups_x, one.groups_y, c.facts.lanes);
}

recording::~recording() {
  if (clock_.empty()) return;
  const current mine(context_);
  for (hipEvent_t e : clock_) context_.hip.hipEventDestroy(e);
}

bitnet_status recording::build(std::span<const gpu::command> commands,
                               const sdk::reporter& report) {
  if (bitnet_status s = prepare_gathering(commands, report); sdk::failed(s)) return s;
  size_t count = 0;
  for (size_t i = 0; i < commands.size(); ++count) {
    const size_t n = count_joined(commands.subspan(i));
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

// One launch, or several of one kernel that are one.
bitnet_status recording::add_kernel(std::span<const gpu::command> joined,
                                    const sdk::reporter& report) {
  const kernel& run = kernel_of(joined[0]);
  const grid how = grid_for(joined[0]);
  step made;
  const auto of_one = [&](const gpu::command& one, launch& value) {
    return describe(one, value, report);
  };
  if (bitnet_status s = join(joined, made.values, made.x, of_one); sdk::failed(s)) return s;
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

}  // namespace bitnet::rocm
