#pragma once
// Every call to a driver fails once, in turn, and nothing is lost but what was asked for: the
// status says why, the stand-in finds nothing left over, and a call later everything works again.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "bitnet/abi/ops.h"
#include "controls.hpp"
#include "gpu-common/driver.hpp"

namespace bitnet::test {

struct outcome {
  bitnet_status status = BITNET_OK;
  std::string message, failed;
  bool right = false;  // what was computed, if it came so far
};

// One of everything: both kinds of buffers and of recordings, kernels, a copy, a queue, an upload
// of `pieces_bytes` bytes.
class round {
 public:
  explicit round(uint64_t pieces_bytes) : pieces_bytes_(pieces_bytes) {
    error_.struct_size = sizeof error_;
  }

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
                                {device->describe().capabilities.group_size, BITNET_OP_RELU2}};
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
    std::vector<uint32_t> words(pieces_bytes_ / 4), arrived(words.size());
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

  const uint64_t pieces_bytes_;
  bitnet_error error_{};
  sdk::reporter report_{&error_, "test"};
  bool arrived_ = false;
};

// Rounds on one device of a platform.
class failing_calls {
 public:
  // `stand_in` and `platform` outlive it. Counts the calls of a round in which nothing fails.
  failing_calls(const controls& stand_in, gpu::platform& platform, uint32_t index,
                uint64_t pieces_bytes)
      : stand_in_(stand_in), platform_(platform), index_(index), pieces_bytes_(pieces_bytes) {
    stand_in_.fail(0, 0);
    const outcome good = run();
    EXPECT_EQ(good.status, BITNET_OK) << good.message;
    EXPECT_TRUE(good.right);
    calls_ = stand_in_.calls();
    EXPECT_EQ(stand_in_.objects(), 0u);
  }
  ~failing_calls() { stand_in_.fail(0, 0); }
  failing_calls(const failing_calls&) = delete;
  failing_calls& operator=(const failing_calls&) = delete;

  uint64_t calls() const noexcept { return calls_; }
  outcome run() { return round(pieces_bytes_).run(platform_, index_); }
  // A round in which the so many-th call answers `result`.
  outcome fail(uint64_t n, int result) {
    stand_in_.fail(n, result);
    outcome out = run();
    out.failed = stand_in_.failed();
    EXPECT_EQ(stand_in_.objects(), 0u) << n << ": " << out.failed;
    stand_in_.fail(0, 0);
    return out;
  }
  // Each of the first `count` calls answers `result` once. `unsaid`: calls whose failure is not
  // reported but shows in what is measured.
  std::vector<outcome> fail_each(int result, uint64_t count,
                                 const std::vector<std::string>& unsaid) {
    std::vector<outcome> out;
    for (uint64_t n = 1; n <= count; ++n) {
      out.push_back(fail(n, result));
      const outcome& last = out.back();
      if (last.status == BITNET_OK) {
        EXPECT_TRUE(last.right ||
                    std::find(unsaid.begin(), unsaid.end(), last.failed) != unsaid.end())
            << last.failed;
      } else {
        EXPECT_NE(last.message.find(std::to_string(result)), std::string::npos) << last.message;
      }
    }
    const outcome later = run();
    EXPECT_EQ(later.status, BITNET_OK) << later.message;
    return out;
  }

 private:
  const controls& stand_in_;
  gpu::platform& platform_;
  const uint32_t index_;
  const uint64_t pieces_bytes_;
  uint64_t calls_ = 0;
};

// Statuses of rounds that failed are `expected`, or `of_host` where the memory of the host is
// asked for. Returns how many rounds failed.
inline uint64_t expect_statuses(const std::vector<outcome>& rounds, bitnet_status expected,
                                const std::string& host_call = {},
                                bitnet_status of_host = BITNET_OK) {
  uint64_t failed = 0;
  for (const outcome& one : rounds) {
    if (one.status == BITNET_OK) continue;
    ++failed;
    EXPECT_EQ(one.status, one.failed == host_call ? of_host : expected)
        << one.failed << ": " << one.message;
  }
  return failed;
}

}  // namespace bitnet::test
