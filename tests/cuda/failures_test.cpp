// Every call to the driver fails once, in turn, and nothing is lost but what was asked for: the
// status says why, the stand-in finds nothing left over, and a call later everything works again.

#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "bitnet/abi/ops.h"
#include "cuda_platform.hpp"
#include "staging.hpp"
#include "stand_in.hpp"

namespace bitnet::cuda::test {
namespace {

struct controls {
  decltype(&bitnet_stand_in_fail) fail;
  decltype(&bitnet_stand_in_calls) calls;
  decltype(&bitnet_stand_in_objects) objects;
};
const controls* find_controls() {
  void* driver = dlopen(usual_driver, RTLD_NOW);
  if (!driver) return nullptr;
  static controls found;
  found.fail = reinterpret_cast<decltype(found.fail)>(dlsym(driver, "bitnet_stand_in_fail"));
  found.calls = reinterpret_cast<decltype(found.calls)>(dlsym(driver, "bitnet_stand_in_calls"));
  found.objects =
      reinterpret_cast<decltype(found.objects)>(dlsym(driver, "bitnet_stand_in_objects"));
  return found.fail ? &found : nullptr;
}

struct outcome {
  bitnet_status status = BITNET_OK;
  std::string message;
  bool right = false;  // what was computed, if it came so far
};

// One of everything: both kinds of buffers, of recordings and of edges between kernels, a copy, a
// queue, an upload of two pieces.
class round {
 public:
  round() { error_.struct_size = sizeof error_; }

  outcome run(gpu::platform& platform) {
    outcome out;
    out.status = all(platform, out.right);
    out.message = error_.message;
    return out;
  }

 private:
  bitnet_status all(gpu::platform& platform, bool& right) {
    std::unique_ptr<gpu::device> device;
    if (bitnet_status s = platform.open(0, device, report_)) return s;
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
    commands[2].copies = {{0, 0, 64}};
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

class failures : public testing::Test {
 protected:
  void SetUp() override {
    stand_in_ = find_controls();
    if (!stand_in_) GTEST_SKIP() << "the stand-in is not where the loader looks";
    begin({.warp_groups = false, .checks = false});
  }
  // Counts the calls of a round in which nothing fails.
  void begin(const permitted& may) {
    std::string why;
    platform_ = open_platform(
        usual_driver, [this](uint32_t, const std::string& line) { log_ += line; }, why, may);
    ASSERT_NE(platform_, nullptr) << why;
    stand_in_->fail(0, 0);
    const outcome good = round().run(*platform_);
    ASSERT_EQ(good.status, BITNET_OK) << good.message;
    ASSERT_TRUE(good.right);
    calls_ = stand_in_->calls();
    ASSERT_EQ(stand_in_->objects(), 0u);
  }
  void TearDown() override {
    if (stand_in_) stand_in_->fail(0, 0);
  }

  // Every call answers `result` once. Returns how many calls' failing was said.
  uint64_t fail_each(int result, bitnet_status expected) {
    uint64_t seen = 0;
    for (uint64_t n = 1; n <= calls_; ++n) {
      SCOPED_TRACE("call " + std::to_string(n) + " of " + std::to_string(calls_));
      stand_in_->fail(n, result);
      const outcome out = round().run(*platform_);
      if (out.status == BITNET_OK) {
        EXPECT_TRUE(out.right || out.message.empty());
      } else {
        ++seen;
        if (out.status != expected) other_.push_back(out);
        EXPECT_NE(out.message.find(std::to_string(result)), std::string::npos) << out.message;
      }
      stand_in_->fail(0, 0);
      EXPECT_EQ(stand_in_->objects(), 0u);
    }
    return seen;
  }

  // Every call answers `result` once. Returns after how many of them the log has these words, and
  // all went well.
  uint64_t go_on_without(const char* words, int result) {
    uint64_t without = 0;
    for (uint64_t n = 1; n <= calls_; ++n) {
      log_.clear();
      stand_in_->fail(n, result);
      const outcome out = round().run(*platform_);
      stand_in_->fail(0, 0);
      if (log_.find(words) == std::string::npos) continue;
      ++without;
      EXPECT_EQ(out.status, BITNET_OK) << out.message;
      EXPECT_TRUE(out.right && out.message.empty()) << out.message;
      EXPECT_EQ(stand_in_->objects(), 0u);
    }
    return without;
  }

  const controls* stand_in_ = nullptr;
  std::unique_ptr<gpu::platform> platform_;
  uint64_t calls_ = 0;
  std::vector<outcome> other_;
  std::string log_;
};

// A recording that the driver does not take as it is meant is made once more.
TEST_F(failures, of_what_lets_kernels_overlap_cost_nothing_else) {
  for (const CUresult result : {CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED})
    EXPECT_EQ(go_on_without("beside those before", result), 3u)
        << "the edge, the graph, and its launch";
}

// A device that is opened computes something, and each of the calls for it may fail: they repeat
// themselves from form to form.
TEST_F(failures, of_the_forms_that_a_device_shows_are_said) {
  const uint64_t without = calls_;
  begin({});
  EXPECT_GT(calls_, without + 500);
  calls_ = 100;
  fail_each(CUDA_ERROR_INVALID_VALUE, BITNET_INTERNAL);
  for (const outcome& o : other_) ADD_FAILURE() << o.status << " " << o.message;
}

// What there is no memory to send through goes the direct way.
TEST_F(failures, of_memory_for_uploads_cost_nothing_else) {
  for (const CUresult result : {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_NOT_SUPPORTED})
    EXPECT_EQ(go_on_without("no memory for uploads", result), 1u);
}

// What gives back says nothing, and there is no error to say then.
TEST_F(failures, of_each_call_are_reported) {
  const uint64_t seen = fail_each(CUDA_ERROR_INVALID_VALUE, BITNET_INTERNAL);
  EXPECT_GT(seen, calls_ / 3) << "of " << calls_;
  for (const outcome& o : other_) ADD_FAILURE() << o.status << " " << o.message;
}

TEST_F(failures, out_of_memory_is_a_status_of_its_own) {
  fail_each(CUDA_ERROR_OUT_OF_MEMORY, BITNET_OUT_OF_DEVICE_MEMORY);
  // Memory of the host is the system's.
  for (const outcome& o : other_) EXPECT_EQ(o.status, BITNET_OUT_OF_MEMORY) << o.message;
}

// From there on the driver gives the same answer to every call.
TEST_F(failures, a_lost_device_is_a_status_of_its_own) {
  for (const CUresult result : {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_FAILED})
    fail_each(result, BITNET_DEVICE_LOST);
  fail_each(CUDA_ERROR_ECC_UNCORRECTABLE, BITNET_DEVICE_LOST);
  for (const outcome& o : other_) ADD_FAILURE() << o.status << " " << o.message;
}

}  // namespace
}  // namespace bitnet::cuda::test
