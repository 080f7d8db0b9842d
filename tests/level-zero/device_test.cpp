// The driver on the stand-in: what a device says, memory, copies, an order of commands, times, and
// what is rejected.

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "bitnet/abi/ops.h"
#include "forms.hpp"
#include "on_stand_in.hpp"

namespace bitnet::level_zero::test {
namespace {

using gpu::kernel_id;
using gpu::memory_place;

class level_zero_device : public testing::Test {
 protected:
  void SetUp() override {
    platform_ = open_platform(why_);
    if (!platform_ || !find_controls()) GTEST_SKIP() << "the stand-in is not opened: " << why_;
    error_.struct_size = sizeof error_;
    must(platform_->open(0, device_, report_));
  }
  void must(bitnet_status s) { ASSERT_EQ(s, BITNET_OK) << error_.message; }
  std::unique_ptr<gpu::buffer> memory_of(memory_place where, const std::vector<float>& values) {
    std::unique_ptr<gpu::buffer> out;
    must(device_->allocate(4 * values.size(), where, out, report_));
    must(device_->upload(*out, 0, values.data(), 4 * values.size(), report_));
    return out;
  }
  std::vector<float> values_of(const gpu::buffer& from) {
    std::vector<float> out(from.size() / 4);
    must(device_->download(from, 0, out.data(), from.size(), report_));
    return out;
  }
  // y = op(a, b) of n elements.
  gpu::command elements(const gpu::kernel& run, const gpu::buffer& a, const gpu::buffer& b,
                        const gpu::buffer& y, uint32_t n) {
    gpu::command out;
    out.run = &run;
    out.bindings = {
        {header_.get(), 0, 64}, {&a, 0, a.size()}, {&b, 0, b.size()}, {&y, 0, y.size(), true}};
    out.params = {gpu::rows_are_tokens, n, 0};
    out.groups_x = 2;
    out.after = true;
    return out;
  }
  const gpu::kernel& op(uint32_t which) {
    kernels_.emplace_back();
    must(device_->make_kernel({kernel_id::elementwise, {group_threads, which}}, kernels_.back(),
                              report_));
    return *kernels_.back();
  }
  void make_header() {
    must(device_->allocate(64, memory_place::host, header_, report_));
    static_cast<uint32_t*>(header_->mapped())[0] = 1;
  }
  void run(const std::vector<gpu::command>& commands, bool timed = false) {
    std::unique_ptr<gpu::queue> turn;
    must(device_->make_queue(turn, report_));
    must(device_->record(commands, timed, work_, report_));
    must(turn->submit(*work_, 1, report_));
    must(turn->wait(1, UINT64_MAX, report_));
    uint64_t reached = 0;
    must(turn->poll(reached, report_));
    EXPECT_EQ(reached, 1u);
  }

  std::string why_;
  bitnet_error error_{};
  const sdk::reporter report_{&error_, "test"};
  std::unique_ptr<platform> platform_;
  std::unique_ptr<gpu::device> device_;
  std::unique_ptr<gpu::buffer> header_;
  std::vector<std::unique_ptr<gpu::kernel>> kernels_;  // outlive the recording
  std::unique_ptr<gpu::recording> work_;
};

TEST_F(level_zero_device, says_what_it_is) {
  const gpu::facts& about = device_->describe();
  EXPECT_EQ(about.name, "stand-in 0 (no GPU)");
  EXPECT_EQ(about.uuid, "11000000-0000-0000-0000-000000000000");
  EXPECT_EQ(about.pci_address, "0000:03:00.0");
  EXPECT_EQ(about.arch, "8086:56a0");
  EXPECT_EQ(about.driver_version, "1.2.3456");
  EXPECT_EQ(about.memory_total_bytes, uint64_t{4} << 30);
  EXPECT_EQ(about.capabilities.max_allocation_bytes, uint64_t{2} << 30);
  EXPECT_EQ(about.compute_units, 64u);
  EXPECT_EQ(about.capabilities.group_size, group_threads);
  EXPECT_EQ(about.capabilities.shared_memory_bytes, 65536u);
}

TEST_F(level_zero_device, says_what_it_is_doing) {
  bitnet_device_status now{};
  must(device_->status(now, report_));
  EXPECT_EQ(now.known, 0u) << "no variable allows the calls";
  const auto enabled = open_platform(why_, true);
  ASSERT_NE(enabled, nullptr) << why_;
  std::unique_ptr<gpu::device> device;
  must(enabled->open(0, device, report_));
  must(device->status(now, report_));
  EXPECT_EQ(now.known, BITNET_STATUS_MEMORY | BITNET_STATUS_HEALTH | BITNET_STATUS_TEMPERATURE |
                           BITNET_STATUS_CLOCK | BITNET_STATUS_THROTTLED);
  EXPECT_EQ(now.memory_total_bytes, uint64_t{4} << 30);
  EXPECT_EQ(now.memory_free_bytes, uint64_t{1} << 30);
  EXPECT_EQ(now.health, BITNET_HEALTH_GOOD);
  EXPECT_EQ(now.temperature_millicelsius, 61500);
  EXPECT_EQ(now.clock_khz, 2100000u);
  EXPECT_EQ(now.throttled, BITNET_THROTTLED_HEAT);
}

TEST_F(level_zero_device, memory_starts_as_zeros_and_keeps_what_is_uploaded) {
  for (const memory_place where : {memory_place::device, memory_place::host}) {
    std::unique_ptr<gpu::buffer> memory;
    must(device_->allocate(4000, where, memory, report_));
    EXPECT_EQ(values_of(*memory), std::vector<float>(1000));
    EXPECT_EQ(memory->mapped() != nullptr, where == memory_place::host);
    std::vector<float> values(500);
    std::iota(values.begin(), values.end(), 1.0f);
    must(device_->upload(*memory, 400, values.data(), 2000, report_));
    const std::vector<float> got = values_of(*memory);
    EXPECT_EQ(got[99], 0);
    EXPECT_EQ(got[100], 1);
    EXPECT_EQ(got[599], 500);
    EXPECT_EQ(got[600], 0);
  }
}

TEST_F(level_zero_device, a_buffer_that_is_too_large_is_rejected_by_the_limit) {
  std::unique_ptr<gpu::buffer> memory;
  EXPECT_EQ(device_->allocate((uint64_t{2} << 30) + 4, memory_place::device, memory, report_),
            BITNET_OUT_OF_DEVICE_MEMORY);
  EXPECT_NE(std::strstr(error_.message, "maxMemAllocSize"), nullptr) << error_.message;
}

// The stand-in runs in reverse what has no barrier between.
TEST_F(level_zero_device, commands_that_come_after_others_see_what_those_wrote) {
  make_header();
  const auto a = memory_of(memory_place::device, {1, 2, -3, 4});
  const auto b = memory_of(memory_place::host, {10, 20, 30, 40});
  const auto y = memory_of(memory_place::device, {0, 0, 0, 0});
  const gpu::kernel &add = op(BITNET_OP_ADD), &square = op(BITNET_OP_RELU2);
  gpu::command copy;
  copy.bindings = {{y.get(), 0, 16}, {b.get(), 0, 16, true}};
  copy.copies = {{0, 8, 8}};
  copy.after = true;
  run({elements(add, *a, *b, *y, 4), elements(square, *y, *y, *y, 4), copy});
  EXPECT_EQ(values_of(*y), (std::vector<float>{121, 484, 729, 1936}));
  EXPECT_EQ(values_of(*b), (std::vector<float>{10, 20, 121, 484}));
}

TEST_F(level_zero_device, a_timed_recording_knows_how_long_each_command_took) {
  make_header();
  const auto a = memory_of(memory_place::device, std::vector<float>(1024, 2));
  const auto y = memory_of(memory_place::device, std::vector<float>(1024));
  const gpu::kernel& square = op(BITNET_OP_RELU2);
  const gpu::command one = elements(square, *a, *a, *y, 1024);
  run({one, one}, true);
  uint64_t times[2] = {};
  ASSERT_TRUE(work_->times(times));
  EXPECT_GT(times[0], 0u);
  EXPECT_GT(times[1], 0u);
  EXPECT_LT(times[0], uint64_t{60} * 1'000'000'000);
  run({one}, false);
  EXPECT_FALSE(work_->times(times));
}

TEST_F(level_zero_device, a_kernel_without_a_form_is_rejected_by_its_constants) {
  std::unique_ptr<gpu::kernel> made;
  EXPECT_EQ(device_->make_kernel({kernel_id::elementwise, {32, BITNET_OP_ADD}}, made, report_),
            BITNET_UNSUPPORTED);
  EXPECT_NE(std::strstr(error_.message, "elementwise for the constants 32 9 0 0 0"), nullptr)
      << error_.message;
  EXPECT_EQ(device_->make_kernel({kernel_id::count, {64}}, made, report_), BITNET_UNSUPPORTED);
}

TEST_F(level_zero_device, waiting_ends_in_time) {
  std::unique_ptr<gpu::queue> turn;
  must(device_->make_queue(turn, report_));
  EXPECT_EQ(turn->wait(1, 1000, report_), BITNET_TIMEOUT);
  EXPECT_NE(std::strstr(error_.message, "no submitted step"), nullptr) << error_.message;
}

}  // namespace
}  // namespace bitnet::level_zero::test
