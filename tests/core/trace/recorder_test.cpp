// What a recorder reports: differences of counters, and spans with the step that they belong to.
#include "trace/recorder.hpp"
#include "trace/kernel_counts.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "bitnet/abi/ops.h"

namespace bitnet::trace {
namespace {

using stats = std::vector<bitnet_kernel_stat>;

bitnet_kernel_stat stat(const char* id, uint64_t calls, uint64_t time_ns = 0, uint64_t bytes = 0,
                        uint32_t op = BITNET_OP_RMS_NORM) {
  bitnet_kernel_stat out{};
  out.struct_size = sizeof out;
  out.op = op;
  out.calls = calls;
  out.time_ns = time_ns;
  out.bytes = bytes;
  std::strncpy(out.id, id, sizeof out.id - 1);
  return out;
}

struct heard {
  uint32_t kind;
  uint64_t runner, step, begin_ns, end_ns;
  uint32_t n_sequences, n_tokens, n_outputs;
  bitnet_status status;
  std::string device, kernel, op;
  uint64_t calls, time_ns, bytes;
};

std::string text_of(bitnet_str text) {
  return {text.data == nullptr ? "" : text.data, text.size};
}

void hear(void* user, const bitnet_trace_event* e) {
  static_cast<std::vector<heard>*>(user)->push_back(
      {e->kind, e->runner, e->step, e->begin_ns, e->end_ns, e->n_sequences, e->n_tokens,
       e->n_outputs, e->status, text_of(e->device), text_of(e->kernel), text_of(e->op), e->calls,
       e->time_ns, e->bytes});
}

TEST(since, is_the_difference) {
  const stats before = {stat("a", 3, 30, 300), stat("b", 1, 10, 100)};
  const stats now = {stat("a", 5, 70, 900), stat("b", 2, 10, 100)};
  const stats out = since(before, now);
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(out[0].calls, 2U);
  EXPECT_EQ(out[0].time_ns, 40U);
  EXPECT_EQ(out[0].bytes, 600U);
  EXPECT_EQ(out[1].calls, 1U);
  EXPECT_EQ(out[1].time_ns, 0U);
}

struct row {
  const char* why;
  stats before, now;
  std::vector<uint64_t> calls;
};

TEST(since, takes_any_lists) {
  for (const row& r : {
           row{"nothing was counted before", {}, {stat("a", 2)}, {2}},
           row{"it did nothing", {stat("a", 2)}, {stat("a", 2)}, {}},
           row{"a kernel came between", {stat("b", 1)}, {stat("a", 4), stat("b", 3)}, {4, 2}},
           row{"the lists have another order",
               {stat("a", 1), stat("b", 2)},
               {stat("b", 5), stat("a", 2)},
               {3, 1}},
           row{"a count fell", {stat("a", 9)}, {stat("a", 3)}, {}},
           row{"one name of two ops",
               {stat("a", 1), stat("a", 2, 0, 0, BITNET_OP_LINEAR_DENSE)},
               {stat("a", 2), stat("a", 5, 0, 0, BITNET_OP_LINEAR_DENSE)},
               {1, 3}},
       }) {
    std::vector<uint64_t> calls;
    for (const bitnet_kernel_stat& one : since(r.before, r.now)) calls.push_back(one.calls);
    EXPECT_EQ(calls, r.calls) << r.why;
  }
}

TEST(since, reads_no_further_than_a_name_without_end) {
  bitnet_kernel_stat endless = stat("", 1);
  std::memset(endless.id, 'x', sizeof endless.id);
  EXPECT_EQ(since({{endless}}, {{endless}}).size(), 0U);
}

TEST(recorder, reports_a_step_with_its_parts) {
  std::vector<heard> all;
  recorder r({hear, &all, true});
  for (uint64_t step = 1; step <= 2; ++step) {
    all.clear();
    r.begin_step(2, 17, 3);
    const auto begin = recorder::clock::now();
    const auto submitted = begin + std::chrono::nanoseconds(5);
    r.ran_on("cpu:0", begin, submitted, BITNET_OK);
    r.kernels("cpu:0", {{stat("rms_norm.scalar", 4, 40, 400)}});
    r.end_step(BITNET_CANCELLED);
    r.sampled(recorder::clock::now());
    ASSERT_EQ(all.size(), 6U);
    std::vector<uint32_t> kinds;
    for (const heard& one : all) {
      kinds.push_back(one.kind);
      EXPECT_EQ(one.step, step);
      EXPECT_EQ(one.runner, all[0].runner);
      EXPECT_LE(one.begin_ns, one.end_ns + (one.kind == BITNET_TRACE_WAIT ? 5 : 0));
      EXPECT_EQ(one.n_sequences, 2U);
      EXPECT_EQ(one.n_tokens, 17U);
      EXPECT_EQ(one.n_outputs, 3U);
    }
    EXPECT_EQ(kinds,
              (std::vector<uint32_t>{BITNET_TRACE_SUBMIT, BITNET_TRACE_WAIT, BITNET_TRACE_DEVICE,
                                     BITNET_TRACE_KERNEL, BITNET_TRACE_STEP, BITNET_TRACE_SAMPLE}));
    EXPECT_EQ(all[0].end_ns - all[0].begin_ns, 5U);
    EXPECT_EQ(all[1].begin_ns, all[0].end_ns);
    EXPECT_EQ(all[2].begin_ns, all[0].begin_ns);
    EXPECT_EQ(all[2].end_ns, all[1].end_ns);
    EXPECT_EQ(all[3].device, "cpu:0");
    EXPECT_EQ(all[3].kernel, "rms_norm.scalar");
    EXPECT_NE(all[3].op, "");
    EXPECT_EQ(all[3].begin_ns, all[3].end_ns) << "when a call began is not known";
    EXPECT_EQ(all[3].calls, 4U);
    EXPECT_EQ(all[3].time_ns, 40U);
    EXPECT_EQ(all[3].bytes, 400U);
    EXPECT_EQ(all[4].status, BITNET_CANCELLED);
    EXPECT_EQ(all[4].device, "");
    EXPECT_EQ(all[5].status, BITNET_OK);
  }
}

TEST(recorder, has_a_number_of_its_own) {
  std::vector<heard> all;
  for (int i = 0; i < 2; ++i) {
    recorder r({hear, &all, false});
    r.begin_step(1, 1, 1);
    r.end_step(BITNET_OK);
  }
  ASSERT_EQ(all.size(), 2U);
  EXPECT_NE(all[0].runner, all[1].runner);
}

TEST(sampling_span, is_nothing_without_a_recorder) {
  const sampling_span none(nullptr);
}

}  // namespace
}  // namespace bitnet::trace
