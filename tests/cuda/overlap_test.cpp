// Which kernels may be launched while those before them compute, and that it changes no result:
// what a graph is made of, by the stand-in's count, and what it computes, in the worst order that
// there is.

#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bitnet/abi/host.h"
#include "bitnet/abi/ops.h"
#include "cuda_platform.hpp"
#include "kernel_table.hpp"
#include "stand_in.hpp"
#include "stand_ins/in_a_process.hpp"

namespace bitnet::cuda::test {
namespace {

using bitnet::test::said_in_a_process;

constexpr uint64_t bytes = 64;

// Squares of squares: levels of one kernel, two, one, a copy, and one more kernel.
class squares {
 public:
  explicit squares(bool overlap) {
    error_.struct_size = sizeof error_;
    const auto log = [this](uint32_t level, const std::string& line) {
      EXPECT_EQ(level, BITNET_LOG_INFO) << line;
      ++reported;
      if (throws) throw std::runtime_error("the log is full");
    };
    platform_ =
        open_platform(usual_driver, log, message_, {.overlap = overlap, .use = {.checks = false}});
    if (!platform_) throw std::runtime_error(message_);
    must(platform_->open(0, device_, report_));
    must(device_->make_queue(queue_, report_));
    for (auto& b : memory_) must(device_->allocate(bytes, gpu::memory_place::device, b, report_));
    must(device_->allocate(bytes, gpu::memory_place::host, header_, report_));
    const uint32_t rows[] = {1};
    must(device_->upload(*header_, 0, rows, sizeof rows, report_));
    const gpu::kernel_spec spec{gpu::kernel_id::elementwise,
                                {device_->describe().capabilities.group_size, BITNET_OP_RELU2}};
    must(device_->make_kernel(spec, square_, report_));
    square(0, 1, true);
    square(1, 2, true);
    square(1, 3, false);
    square(2, 1, true);  // where both before it have read
    gpu::command& copy = commands_.emplace_back();
    copy.after = true;
    copy.copies = {{0, 0, bytes}};
    copy.bindings = {{memory_[1].get(), 0, bytes}, {memory_[4].get(), 0, bytes}};
    square(4, 0, true);
  }

  std::unique_ptr<gpu::recording> record(bool timed = false) {
    std::unique_ptr<gpu::recording> made;
    must(device_->record(commands_, timed, made, report_));
    return made;
  }
  // What becomes of x, and what two more buffers have.
  std::string result(gpu::recording& work, float x) {
    std::vector<float> values(bytes / 4, x);
    must(device_->upload(*memory_[0], 0, values.data(), bytes, report_));
    must(queue_->submit(work, ++value_, report_));
    must(queue_->wait(value_, UINT64_MAX, report_));
    std::string out;
    for (const int i : {0, 2, 3}) {
      must(device_->download(*memory_[i], 0, values.data(), bytes, report_));
      out += std::to_string(static_cast<int>(values[15])) + " ";
    }
    return out;
  }

  // Its caller keeps a recording, and not what it was made of.
  void forget() { commands_.clear(); }

  uint64_t reached() {
    uint64_t value = 0;
    must(queue_->poll(value, report_));
    return value;
  }

  int reported = 0;  // lines in the log
  bool throws = false;

 private:
  void must(bitnet_status s) const {
    if (s != BITNET_OK) throw std::runtime_error(error_.message);
  }
  void square(size_t from, size_t to, bool after) {
    const gpu::elementwise_params p{gpu::rows_are_tokens, 16, 0};
    gpu::command& c = commands_.emplace_back();
    c.run = square_.get();
    for (const gpu::buffer* b :
         {header_.get(), memory_[from].get(), memory_[from].get(), memory_[to].get()})
      c.bindings.push_back({b, 0, bytes});
    c.params.resize(sizeof p / 4);
    std::memcpy(c.params.data(), &p, sizeof p);
    c.after = after;
  }

  bitnet_error error_{};
  sdk::reporter report_{&error_, "test"};
  std::string message_;
  std::unique_ptr<gpu::platform> platform_;
  std::unique_ptr<gpu::device> device_;
  std::unique_ptr<gpu::queue> queue_;
  std::unique_ptr<gpu::buffer> memory_[5], header_;
  std::unique_ptr<gpu::kernel> square_;
  std::vector<gpu::command> commands_;
  uint64_t value_ = 0;
};

template <class Call>
Call* of_stand_in(const char* name) {
  return reinterpret_cast<Call*>(dlsym(dlopen(usual_driver, RTLD_NOW | RTLD_NOLOAD), name));
}

// "programmatic/other edges: results; reported", two recordings in a process with these settings.
std::string said(const char* settings, bool overlap = true, bool timed = false) {
  return said_in_a_process(settings, [&] {
    squares one(overlap);
    const auto edges = of_stand_in<decltype(bitnet_stand_in_edges)>("bitnet_stand_in_edges");
    std::string out;
    for (const float x : {1.0f, 2.0f}) {
      const std::string result = one.result(*one.record(timed), x);
      out += std::to_string(edges(1)) + "/" + std::to_string(edges(0)) + ": " + result;
    }
    return out + "reported " + std::to_string(one.reported);
  });
}

// Kernel to kernel: 1 to 2, and 2 to 1. The header's copy to the first, the last to the copy and
// the copy to what is behind it stay plain.
constexpr const char* beside = "4/3: 1 1 1 4/3: 65536 16 16 reported 0";
constexpr const char* one_by_one = "0/7: 1 1 1 0/7: 65536 16 16 reported 0";

TEST(cuda_overlap, is_between_kernels_only) {
  EXPECT_EQ(said("arch=90"), beside);
  EXPECT_EQ(said("arch=120"), beside);
}
// As far as there is code for it: builds with sanitizers have that of sm_90 alone.
TEST(cuda_overlap, is_not_before_sm_90) {
  for (const auto& [architecture, setting] : {std::pair{80, "arch=80"}, {89, "arch=89"}})
    if (code_of(architecture) != 0) {
      EXPECT_EQ(said(setting), one_by_one);
    }
}
TEST(cuda_overlap, is_left_out_where_it_is_not_wanted) {
  EXPECT_EQ(said("arch=90", false), one_by_one);
}
// Seven nodes and their events in one row, in which nothing runs beside anything.
TEST(cuda_overlap, is_left_out_where_commands_are_timed) {
  EXPECT_EQ(said("arch=90", true, true), "0/13: 1 1 1 0/13: 65536 16 16 reported 0");
}
TEST(cuda_overlap, is_tried_once_where_the_driver_refuses) {
  const std::string reported = std::string(one_by_one, strlen(one_by_one) - 1) + "1";
  for (const char* refusal :
       {"beside=801", "beside=1", "ready=801", "ready=1", "launch=801", "launch=1"})
    EXPECT_EQ(said(refusal), reported) << refusal;
}
// Each is made once more when it is launched first, and what it was made of is not needed again.
TEST(cuda_overlap, recordings_that_were_made_before_a_launch_is_refused) {
  const std::string out = said_in_a_process("launch=801", [] {
    squares one(true);
    const auto first = one.record(), second = one.record();
    one.forget();
    std::string said;
    for (const float x : {1.0f, 2.0f}) said += one.result(*first, x) + one.result(*second, x);
    return said + "reported " + std::to_string(one.reported);
  });
  EXPECT_EQ(out, "1 1 1 1 1 1 65536 16 16 65536 16 16 reported 1");
}
// A step that could not be launched leaves a queue and a recording that work.
TEST(cuda_overlap, what_fails_while_a_graph_is_made_once_more) {
  const std::string out = said_in_a_process("launch=801,at_once=1", [] {
    const auto attempt = [](squares& one, gpu::recording& work) {
      try {
        return one.result(work, 1);
      } catch (const std::runtime_error&) {
        return std::string();
      }
    };
    uint64_t failed = 0, n = 0;
    for (std::string said; said.empty() || n < 40; ++n) {
      squares one(true);
      const auto fail = of_stand_in<decltype(bitnet_stand_in_fail)>("bitnet_stand_in_fail");
      const auto work = one.record();
      fail(n + 1, CUDA_ERROR_OUT_OF_MEMORY);
      said = attempt(one, *work);
      fail(0, 0);
      failed += said.empty() ? 1 : 0;
      if (const std::string again = one.result(*work, 2); again != "65536 16 16 ") return again;
    }
    squares one(true);
    const auto work = one.record();
    one.throws = true;
    std::string said = failed > 20 ? "many " : std::to_string(failed);
    said += attempt(one, *work);
    said += "reached " + std::to_string(one.reached()) + ", ";
    return said + one.result(*work, 2);
  });
  EXPECT_EQ(out, "many reached 0, 65536 16 16 ");
}
// Other failures are failures.
TEST(cuda_overlap, does_not_hide_what_else_fails) {
  EXPECT_NE(said("ready=2").find("cuGraphInstantiate failed"), std::string::npos);
  EXPECT_NE(said("beside=719").find("cuGraphAddDependencies failed"), std::string::npos);
  EXPECT_NE(said("launch=719").find("cuGraphLaunch failed"), std::string::npos);
}

// A device can be newer than all code that is built: what it runs then may not wait.
TEST(cuda_overlap, is_by_the_code_and_not_by_the_device) {
  const struct {
    int architecture, expected;
    std::vector<int> built, ptx;
    const char* why;
  } rows[] = {{90, 90, {75, 80, 90}, {80, 90}, "its own"},
              {90, 80, {75, 80}, {80}, "the newest's PTX"},
              {89, 86, {80, 86, 90}, {80, 90}, "the last of the same first digit"},
              {100, 90, {80, 90}, {80, 90}, "PTX that waits"},
              {110, 90, {75, 80, 90, 100, 120}, {80, 90, 120}, "PTX older than the newest"},
              {110, 110, {90, 100, 110, 120}, {90, 120}, "its own before PTX"},
              {88, 80, {75, 90}, {80, 90}, "PTX that does not wait"},
              {121, 120, {90, 120}, {120}, "an older minor"},
              {87, 80, {80}, {80}, "Jetson runs no code of a card, but its PTX"},
              {87, 0, {80}, {90}, "Jetson runs no code of a card"},
              {87, 87, {80, 87, 90}, {80, 90}, "Jetson's own"},
              {89, 86, {86, 87}, {86}, "a card runs no code of Jetson's"},
              {75, 0, {80, 90}, {80, 90}, "none"},
              {90, 0, {80, 100}, {100}, "neither its own nor older PTX"}};
  for (const auto& row : rows)
    EXPECT_EQ(code_of(row.architecture, row.built, row.ptx), row.expected) << row.why;
}

}  // namespace
}  // namespace bitnet::cuda::test
