#include "trace/recorder.hpp"

#include <atomic>
#include <string_view>

#include "compute/graph/graph.hpp"
#include "trace/kernel_counts.hpp"

namespace bitnet::trace {
namespace {

uint64_t ns_of(recorder::clock::time_point when) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch()).count());
}

bitnet_str str_of(std::string_view text) {
  return {text.data(), text.size()};
}

std::atomic<uint64_t> n_recorders{0};

}  // namespace

recorder::recorder(const listener& to) : to_(to) {
  step_.struct_size = sizeof step_;
  step_.runner = n_recorders.fetch_add(1, std::memory_order_relaxed) + 1;
}

void recorder::begin_step(uint32_t n_sequences, uint32_t n_tokens, uint32_t n_outputs) {
  ++step_.step;
  step_.n_sequences = n_sequences;
  step_.n_tokens = n_tokens;
  step_.n_outputs = n_outputs;
  began_ = clock::now();
}

bitnet_trace_event recorder::event(uint32_t kind, clock::time_point begin,
                                   clock::time_point end) const {
  bitnet_trace_event out = step_;
  out.kind = kind;
  out.begin_ns = ns_of(begin);
  out.end_ns = ns_of(end);
  return out;
}

void recorder::end_step(bitnet_status status) const {
  bitnet_trace_event one = event(BITNET_TRACE_STEP, began_, clock::now());
  one.status = status;
  to_.call(to_.user, &one);
}

void recorder::ran_on(const std::string& device, clock::time_point begin,
                      clock::time_point submitted, bitnet_status status) const {
  const auto end = clock::now();
  for (bitnet_trace_event one :
       {event(BITNET_TRACE_SUBMIT, begin, submitted), event(BITNET_TRACE_WAIT, submitted, end),
        event(BITNET_TRACE_DEVICE, begin, end)}) {
    one.device = str_of(device);
    one.status = status;
    to_.call(to_.user, &one);
  }
}

void recorder::kernels(const std::string& device, std::span<const bitnet_kernel_stat> did) const {
  const auto now = clock::now();
  for (const bitnet_kernel_stat& k : did) {
    const std::string op = compute::op_name(k.op);
    bitnet_trace_event one = event(BITNET_TRACE_KERNEL, now, now);
    one.device = str_of(device);
    one.kernel = str_of(id_of(k));
    one.op = str_of(op);
    one.calls = k.calls;
    one.time_ns = k.time_ns;
    one.bytes = k.bytes;
    to_.call(to_.user, &one);
  }
}

void recorder::sampled(clock::time_point begin) const {
  const bitnet_trace_event one = event(BITNET_TRACE_SAMPLE, begin, clock::now());
  to_.call(to_.user, &one);
}

}  // namespace bitnet::trace
