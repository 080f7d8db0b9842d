// Every call to the runtime fails once, in turn, and nothing is lost but what was asked for: the
// status says why, the stand-in finds nothing left over, and a call later everything works again.

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "bitnet/abi/ops.h"
#include "memory.hpp"
#include "on_stand_in.hpp"

namespace bitnet::rocm::test {
namespace {

struct outcome {
  bitnet_status status = BITNET_OK;
  std::string message, failed;
  bool right = false;  // what was computed, if it came so far
};

// One of everything: both kinds of buffers and of recordings, a kernel, a copy, a queue, an upload
// of two pieces.
class round {
 public:
  round() { error_.struct_size = sizeof error_; }

  outcome run(gpu::platform& platform, uint32_t index) {
    outcome out;
    out.status = all(platform, index, out.right);
    out.message = error_.message;
    return out;
  }

 private:
  bitnet_status all(gpu::platform& platform, uint32_t index, bool& right) {
    std::unique_ptr<gpu::device> device;
    if (bitnet_status s = platform.open(index, device, report_)) return s;
    bitnet_device_status answer{};
    if (bitnet_status s = device->status(answer, report_)) return s;
    std::unique_ptr<gpu::buffer> header, x, y, z;
    if (bitnet_status s = device->allocate(64, gpu::memory_place::host, header, report_)) return s;
    if (bitnet_status s = device->allocate(64, gpu::memory_place::device, x, report_)) return s;
    if (bitnet_status s = device->allocate(64, gpu::memory_place::device, y, report_)) return s;
    if (bitnet_status s = device->allocate(64, gpu::memory_place::device, z, report_)) return s;
    const uint32_t rows[4] = {1, 0, 0, 0};
    const float values[16] = {-1, 2, 4};
    if (bitnet_status s = device->upload(*header, 0, rows, sizeof rows, report_)) return s;
    if (bitnet_status s = device->upload(*x, 0, values, sizeof values, report_)) return s;
    if (bitnet_status s = send_pieces(*device)) return s;
    std::unique_ptr<gpu::kernel> square;
    const gpu::kernel_spec spec{gpu::kernel_id::elementwise,
                                {device->describe().group_size, BITNET_OP_RELU2}};
    if (bitnet_status s = device->make_kernel(spec, square, report_)) return s;
    const gpu::elementwise_params p{gpu::rows_are_tokens, 16, 0};
    std::vector<gpu::command> commands(3);
    const gpu::buffer* const ends[] = {x.get(), y.get(), z.get()};
    for (size_t i = 0; i < 2; ++i) {
      gpu::command& one = commands[i];
      one.run = square.get();
      one.bindings = {
          {header.get(), 0, 64}, {ends[i], 0, 64}, {ends[i], 0, 64}, {ends[i + 1], 0, 64}};
      one.params.resize(sizeof p / 4);
      std::memcpy(one.params.data(), &p, sizeof p);
    }
    commands[1].after = commands[2].after = true;
    commands[2].copies = {{0, 0, 32}, {32, 32, 32}};
    commands[2].bindings = {{z.get(), 0, 64}, {x.get(), 0, 64}};
    return compute(*device, commands, *x, right);
  }

  bitnet_status send_pieces(gpu::device& device) {
    std::vector<uint32_t> words(staging::piece / 4 + 1), arrived(words.size());
    std::iota(words.begin(), words.end(), 7u);
    const uint64_t bytes = 4 * words.size();
    std::unique_ptr<gpu::buffer> memory;
    if (bitnet_status s = device.allocate(bytes, gpu::memory_place::device, memory, report_))
      return s;
    if (bitnet_status s = device.upload(*memory, 0, words.data(), bytes, report_)) return s;
    if (bitnet_status s = device.download(*memory, 0, arrived.data(), bytes, report_)) return s;
    arrived_ = arrived == words;
    return BITNET_OK;
  }

  bitnet_status compute(gpu::device& device, const std::vector<gpu::command>& commands,
                        const gpu::buffer& result, bool& right) {
    std::unique_ptr<gpu::recording> plain, timed;
    if (bitnet_status s = device.record(commands, false, plain, report_)) return s;
    if (bitnet_status s = device.record(commands, true, timed, report_)) return s;
    std::unique_ptr<gpu::queue> queue;
    if (bitnet_status s = device.make_queue(queue, report_)) return s;
    if (bitnet_status s = queue->submit(*plain, 1, report_)) return s;
    if (bitnet_status s = queue->wait(1, UINT64_MAX, report_)) return s;
    if (bitnet_status s = queue->submit(*timed, 2, report_)) return s;
    if (bitnet_status s = queue->wait(2, UINT64_MAX, report_)) return s;
    uint64_t reached = 0, times[3] = {};
    if (bitnet_status s = queue->poll(reached, report_)) return s;
    const bool known = timed->times(times);
    float out[16];
    if (bitnet_status s = device.download(result, 0, out, sizeof out, report_)) return s;
    right =
        arrived_ && known && reached == 2 && out[0] == 0 && out[1] == 0x1p16f && out[2] == 0x1p32f;
    return BITNET_OK;
  }

  bitnet_error error_{};
  sdk::reporter report_{&error_, "test"};
  bool arrived_ = false;
};

// Of the device with waves of 32 lanes, and of that with 64.
class failures : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override {
    stand_in_ = find_controls();
    if (!stand_in_) GTEST_SKIP() << "the stand-in is not where the loader looks";
    std::string why;
    platform_ =
        open_platform([this](uint32_t, const std::string& line) { log_ += line; }, why, false);
    ASSERT_NE(platform_, nullptr) << why;
    stand_in_->fail(0, 0);
    const outcome good = round().run(*platform_, GetParam());
    ASSERT_EQ(good.status, BITNET_OK) << good.message;
    ASSERT_TRUE(good.right);
    calls_ = stand_in_->calls();
    ASSERT_GT(calls_, 100u);
    ASSERT_EQ(stand_in_->objects(), 0u);
  }
  void TearDown() override {
    if (stand_in_) stand_in_->fail(0, 0);
  }

  // Every call answers `result` once; what came of each.
  std::vector<outcome> fail_each(hipError_t result) {
    std::vector<outcome> out;
    for (uint64_t n = 1; n <= calls_; ++n) {
      stand_in_->fail(n, result);
      out.push_back(round().run(*platform_, GetParam()));
      out.back().failed = stand_in_->failed();
      EXPECT_EQ(stand_in_->objects(), 0u) << n << ": " << out.back().failed;
      stand_in_->fail(0, 0);
      if (out.back().status == BITNET_OK) {
        EXPECT_TRUE(out.back().right || out.back().failed == "hipEventElapsedTime" ||
                    out.back().failed == "hipSetDevice")
            << out.back().failed;
      } else {
        EXPECT_NE(out.back().message.find(std::to_string(result)), std::string::npos)
            << out.back().message;
      }
    }
    const outcome later = round().run(*platform_, GetParam());
    EXPECT_EQ(later.status, BITNET_OK) << later.message;
    return out;
  }

  const controls* stand_in_ = nullptr;
  std::unique_ptr<gpu::platform> platform_;
  uint64_t calls_ = 0;
  std::string log_;
};

// What gives back says nothing, and there is no error to say then.
TEST_P(failures, of_each_call_are_said) {
  uint64_t seen = 0;
  for (const outcome& o : fail_each(hipErrorInvalidValue)) {
    if (o.status == BITNET_OK) continue;
    ++seen;
    EXPECT_EQ(o.status, BITNET_INTERNAL) << o.message;
    EXPECT_NE(o.message.find(o.failed), std::string::npos) << o.message;
  }
  EXPECT_GT(seen, calls_ / 4) << "of " << calls_;
}

TEST_P(failures, out_of_memory_is_a_status_of_its_own) {
  for (const outcome& o : fail_each(hipErrorOutOfMemory)) {
    if (o.status == BITNET_OK) continue;
    // Memory of the host is the system's.
    EXPECT_EQ(o.status,
              o.failed == "hipHostMalloc" ? BITNET_OUT_OF_MEMORY : BITNET_OUT_OF_DEVICE_MEMORY)
        << o.failed << ": " << o.message;
  }
  EXPECT_NE(log_.find("no memory for uploads that stays in place"), std::string::npos);
}

// From there on the runtime gives the same answer to every call.
TEST_P(failures, a_lost_device_is_a_status_of_its_own) {
  for (const hipError_t result : {hipErrorIllegalAddress, hipErrorLaunchFailure})
    for (const outcome& o : fail_each(result))
      EXPECT_TRUE(o.status == BITNET_OK || o.status == BITNET_DEVICE_LOST) << o.message;
}

INSTANTIATE_TEST_SUITE_P(waves_of, failures, testing::Values(0u, 1u),
                         [](const auto& of) { return of.param == 0 ? "32_lanes" : "64_lanes"; });

}  // namespace
}  // namespace bitnet::rocm::test
