// Every call to the driver fails once, in turn, and nothing is lost but what was asked for: the
// status says why, the stand-in finds nothing left over, and a call later everything works again.

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "bitnet/abi/ops.h"
#include "forms.hpp"
#include "on_stand_in.hpp"

namespace bitnet::level_zero::test {
namespace {

struct outcome {
  bitnet_status status = BITNET_OK;
  std::string message, failed;
};

// One of everything: both kinds of buffers and of recordings, a kernel, a copy, a queue.
class round {
 public:
  explicit round(gpu::platform& on) : platform_(on) { error_.struct_size = sizeof error_; }

  outcome run() {
    outcome out;
    out.status = all();
    out.message = error_.message;
    return out;
  }

 private:
  bitnet_status all() {
    if (bitnet_status s = platform_.open(0, device_, report_)) return s;
    bitnet_device_status now{};
    if (bitnet_status s = device_->status(now, report_)) return s;
    std::unique_ptr<gpu::buffer> header, x, y;
    if (bitnet_status s = device_->allocate(64, gpu::memory_place::host, header, report_)) return s;
    if (bitnet_status s = device_->allocate(64, gpu::memory_place::device, x, report_)) return s;
    if (bitnet_status s = device_->allocate(64, gpu::memory_place::device, y, report_)) return s;
    const uint32_t rows[4] = {1, 0, 0, 0};
    if (bitnet_status s = device_->upload(*header, 0, rows, sizeof rows, report_)) return s;
    if (bitnet_status s = device_->upload(*x, 0, rows, sizeof rows, report_)) return s;
    std::unique_ptr<gpu::kernel> square;
    const gpu::kernel_spec spec{gpu::kernel_id::elementwise, {group_threads, BITNET_OP_RELU2}};
    if (bitnet_status s = device_->make_kernel(spec, square, report_)) return s;
    const gpu::elementwise_params p{gpu::rows_are_tokens, 16, 0};
    std::vector<gpu::command> commands(2);
    commands[0].run = square.get();
    commands[0].bindings = {
        {header.get(), 0, 64}, {x.get(), 0, 64}, {x.get(), 0, 64}, {y.get(), 0, 64, true}};
    commands[0].params.resize(sizeof p / 4);
    std::memcpy(commands[0].params.data(), &p, sizeof p);
    commands[1].after = true;
    commands[1].copies = {{0, 0, 32}, {32, 32, 32}};
    commands[1].bindings = {{y.get(), 0, 64}, {x.get(), 0, 64, true}};
    return compute(commands, *x);
  }

  bitnet_status compute(const std::vector<gpu::command>& commands, const gpu::buffer& result) {
    std::unique_ptr<gpu::recording> plain, timed;
    if (bitnet_status s = device_->record(commands, false, plain, report_)) return s;
    if (bitnet_status s = device_->record(commands, true, timed, report_)) return s;
    std::unique_ptr<gpu::queue> queue;
    if (bitnet_status s = device_->make_queue(queue, report_)) return s;
    if (bitnet_status s = queue->submit(*plain, 1, report_)) return s;
    if (bitnet_status s = queue->wait(1, UINT64_MAX, report_)) return s;
    if (bitnet_status s = queue->submit(*timed, 2, report_)) return s;
    if (bitnet_status s = queue->wait(2, UINT64_MAX, report_)) return s;
    uint64_t reached = 0, times[2] = {};
    if (bitnet_status s = queue->poll(reached, report_)) return s;
    timed->times(times);
    float out[16];
    return device_->download(result, 0, out, sizeof out, report_);
  }

  gpu::platform& platform_;
  std::unique_ptr<gpu::device> device_;
  bitnet_error error_{};
  sdk::reporter report_{&error_, "test"};
};

class level_zero_failures : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    platform_ = open_platform(why);
    stand_in_ = find_controls();
    if (!stand_in_ || !platform_) GTEST_SKIP() << "the stand-in is not opened: " << why;
    stand_in_->fail(0, 0);
    const outcome good = round(*platform_).run();
    ASSERT_EQ(good.status, BITNET_OK) << good.message;
    calls_ = stand_in_->calls();
    ASSERT_GT(calls_, 100u);
    ASSERT_EQ(stand_in_->objects(), 0u);
  }
  void TearDown() override {
    if (stand_in_) stand_in_->fail(0, 0);
  }

  // Every call answers `result` once; what came of each.
  std::vector<outcome> fail_each(ze_result_t result) {
    std::vector<outcome> out;
    for (uint64_t n = 1; n <= calls_; ++n) {
      stand_in_->fail(n, static_cast<uint32_t>(result));
      out.push_back(round(*platform_).run());
      out.back().failed = stand_in_->failed();
      EXPECT_EQ(stand_in_->objects(), 0u) << n << ": " << out.back().failed;
      stand_in_->fail(0, 0);
      const outcome later = round(*platform_).run();
      EXPECT_EQ(later.status, BITNET_OK) << n << ": " << later.message;
    }
    return out;
  }

  const controls* stand_in_ = nullptr;
  std::unique_ptr<platform> platform_;
  uint64_t calls_ = 0;
};

// Calls that free something report to no caller, and times are not known then.
bool is_silent(const std::string& call) {
  return call.starts_with("end_") || call == "free_memory" || call == "event_times" || call.empty();
}
// After these it is not known what a step has done.
bool ends_the_queue(const std::string& call) {
  return call == "event_status" || call == "event_wait";
}

TEST_F(level_zero_failures, of_each_call_are_reported) {
  for (const outcome& o : fail_each(ZE_RESULT_ERROR_INVALID_ARGUMENT)) {
    if (is_silent(o.failed)) {
      EXPECT_EQ(o.status, BITNET_OK) << o.failed << ": " << o.message;
      continue;
    }
    EXPECT_EQ(o.status, ends_the_queue(o.failed) ? BITNET_DEVICE_LOST : BITNET_INTERNAL)
        << o.failed << ": " << o.message;
    EXPECT_NE(o.message.find("0x78000004"), std::string::npos) << o.failed << ": " << o.message;
  }
}

TEST_F(level_zero_failures, out_of_memory_is_a_status_of_its_own) {
  for (const outcome& o : fail_each(ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)) {
    if (is_silent(o.failed) || ends_the_queue(o.failed)) continue;
    EXPECT_EQ(o.status, BITNET_OUT_OF_DEVICE_MEMORY) << o.failed << ": " << o.message;
  }
}

TEST_F(level_zero_failures, a_lost_device_is_a_status_of_its_own) {
  for (const outcome& o : fail_each(ZE_RESULT_ERROR_DEVICE_LOST)) {
    if (is_silent(o.failed)) continue;
    EXPECT_EQ(o.status, BITNET_DEVICE_LOST) << o.failed << ": " << o.message;
  }
}

// The calls by which devices are found.
TEST_F(level_zero_failures, while_looking_for_devices_are_reported) {
  std::string why;
  const library* const calls = library_of_process(why);
  stand_in_->fail(0, 0);
  ASSERT_FALSE(list_devices(*calls, why).empty());
  const uint64_t all = stand_in_->calls();
  for (uint64_t n = 1; n <= all; ++n) {
    stand_in_->fail(n, ZE_RESULT_ERROR_UNKNOWN);
    why.clear();
    const std::vector<device_facts> found = list_devices(*calls, why);
    const std::string failed = stand_in_->failed();
    const bool usable = !found.empty() && found[0].refusal.empty();
    EXPECT_EQ(usable, why.empty()) << failed << ": " << why;
    // What only adds a fact costs that alone.
    const bool is_needed =
        failed != "pci" && failed != "memory_properties" && failed != "driver_properties";
    EXPECT_EQ(usable, !is_needed) << failed << ": " << why;
  }
}

}  // namespace
}  // namespace bitnet::level_zero::test
