// What the cuda backend answers when calls of the driver fail.

#include <cuda.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "cuda_platform.hpp"
#include "gpu-common/streams/staging.hpp"
#include "stand_ins/failing_calls.hpp"

namespace bitnet::cuda::test {
namespace {

// With the version that cuda.h gives some calls: "cuCtxPushCurrent_v2".
#define TEXT_OF(name) #name
#define NAME_OF(call) TEXT_OF(call)

using bitnet::test::controls, bitnet::test::expect_statuses, bitnet::test::outcome;

class failures : public testing::Test {
 protected:
  void SetUp() override {
    stand_in_ = bitnet::test::find_controls(usual_driver);
    if (!stand_in_) GTEST_SKIP() << "the stand-in is not where the loader looks";
    begin({.warp_groups = false, .use = {.checks = false}});
  }
  void begin(const permitted& may) {
    std::string why;
    failing_.reset();
    platform_ = open_platform(
        usual_driver, [this](uint32_t, const std::string& line) { log_ += line; }, why, may);
    ASSERT_NE(platform_, nullptr) << why;
    failing_.emplace(*stand_in_, *platform_, 0, gpu::staging_piece + 4);
  }

  std::vector<outcome> fail_each(CUresult result, uint64_t count) {
    return failing_->fail_each(result, count,
                               {NAME_OF(cuEventElapsedTime), NAME_OF(cuCtxPushCurrent)});
  }
  std::vector<outcome> fail_each(CUresult result) { return fail_each(result, failing_->calls()); }

  // Every call answers `result` once. Returns after how many of them the log has these words, and
  // all went well.
  uint64_t go_on_without(const char* words, CUresult result) {
    uint64_t without = 0;
    for (uint64_t n = 1; n <= failing_->calls(); ++n) {
      log_.clear();
      const outcome out = failing_->fail(n, result);
      if (log_.find(words) == std::string::npos) continue;
      ++without;
      EXPECT_EQ(out.status, BITNET_OK) << out.message;
      EXPECT_TRUE(out.right && out.message.empty()) << out.message;
    }
    return without;
  }

  const controls* stand_in_ = nullptr;
  std::unique_ptr<gpu::platform> platform_;
  std::optional<bitnet::test::failing_calls> failing_;
  std::string log_;
};

// A recording that the driver does not take as it is meant is made once more.
TEST_F(failures, of_what_lets_kernels_overlap_cost_nothing_else) {
  for (const CUresult result : {CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED})
    EXPECT_EQ(go_on_without("before the previous one has ended", result), 3u)
        << "the edge, the graph, and its launch";
}

// A device that is opened computes something, and each of the calls for it may fail: they repeat
// themselves from form to form.
TEST_F(failures, of_the_forms_that_a_device_shows_are_said) {
  const uint64_t without = failing_->calls();
  begin({});
  EXPECT_GT(failing_->calls(), without + 500);
  expect_statuses(fail_each(CUDA_ERROR_INVALID_VALUE, 100), BITNET_INTERNAL);
}

// What there is no memory to send through goes the direct way.
TEST_F(failures, of_memory_for_uploads_cost_nothing_else) {
  for (const CUresult result : {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_NOT_SUPPORTED})
    EXPECT_EQ(go_on_without("no pinned memory for uploads", result), 1u);
}

// What gives back says nothing, and there is no error to say then.
TEST_F(failures, of_each_call_are_reported) {
  const uint64_t seen = expect_statuses(fail_each(CUDA_ERROR_INVALID_VALUE), BITNET_INTERNAL);
  EXPECT_GT(seen, failing_->calls() / 3) << "of " << failing_->calls();
}

// Memory of the host is the system's.
TEST_F(failures, out_of_memory_is_a_status_of_its_own) {
  expect_statuses(fail_each(CUDA_ERROR_OUT_OF_MEMORY), BITNET_OUT_OF_DEVICE_MEMORY,
                  "cuMemHostAlloc", BITNET_OUT_OF_MEMORY);
}

// From there on the driver gives the same answer to every call.
TEST_F(failures, a_lost_device_is_a_status_of_its_own) {
  for (const CUresult result :
       {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_ECC_UNCORRECTABLE})
    expect_statuses(fail_each(result), BITNET_DEVICE_LOST);
}

}  // namespace
}  // namespace bitnet::cuda::test
