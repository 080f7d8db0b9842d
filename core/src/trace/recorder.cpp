#include "trace/recorder.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string_view>

#include "compute/graph/graph.hpp"

namespace bitnet::trace {
namespace {

uint64_t ns_of(recorder::clock::time_point when) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch()).count());
}

uint64_t grown(uint64_t before, uint64_t now) {
  return now - std::min(before, now);
}

bitnet_str str_of(std::string_view text) {
  return {text.data(), text.size()};
}

// Plugins fill it: it may have no end.
std::string_view id_of(const bitnet_kernel_stat& stat) {
  return {stat.id, ::strnlen(stat.id, sizeof stat.id)};
}

bool is_same(const bitnet_kernel_stat& a, const bitnet_kernel_stat& b) {
  return a.op == b.op && id_of(a) == id_of(b);
}

std::atomic<uint64_t> n_recorders{0};

}  // namespace

// A backend lists its kernels in one order, so the place is tried before the search.
std::vector<bitnet_kernel_stat> since(std::span<const bitnet_kernel_stat> before,
                                      std::span<const bitnet_kernel_stat> now) {
  std::vector<bitnet_kernel_stat> out;
  for (std::size_t i = 0; i < now.size(); ++i) {
    bitnet_kernel_stat one = now[i];
    const auto same = [&](const bitnet_kernel_stat& b) { return is_same(b, one); };
    const auto was = i < before.size() && same(before[i])
                         ? before.begin() + static_cast<std::ptrdiff_t>(i)
                         : std::ranges::find_if(before, same);
    if (was != before.end()) {
      one.calls = grown(was->calls, one.calls);
      one.time_ns = grown(was->time_ns, one.time_ns);
      one.bytes = grown(was->bytes, one.bytes);
    }
    if (one.calls != 0) out.push_back(one);
  }
  return out;
}

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
