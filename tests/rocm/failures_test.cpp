// What the rocm backend answers when calls of the runtime fail.

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "gpu-common/streams/staging.hpp"
#include "on_stand_in.hpp"
#include "stand_ins/failing_calls.hpp"

namespace bitnet::rocm::test {
namespace {

using bitnet::test::expect_statuses, bitnet::test::outcome;

// Of the device with waves of 32 lanes, and of that with 64.
class failures : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override {
    const auto* stand_in = bitnet::test::find_controls(usual_runtimes[0]);
    if (!stand_in) GTEST_SKIP() << "the stand-in is not where the loader looks";
    std::string why;
    platform_ = open_platform([this](uint32_t, const std::string& line) { log_ += line; }, why,
                              {.checks = false});
    ASSERT_NE(platform_, nullptr) << why;
    failing_.emplace(*stand_in, *platform_, GetParam(), gpu::staging_piece + 4);
    ASSERT_GT(failing_->calls(), 100u);
  }

  std::vector<outcome> fail_each(hipError_t result) {
    return failing_->fail_each(result, failing_->calls(), {"hipEventElapsedTime", "hipSetDevice"});
  }

  std::unique_ptr<gpu::platform> platform_;
  std::optional<bitnet::test::failing_calls> failing_;
  std::string log_;
};

// What gives back says nothing, and there is no error to say then.
TEST_P(failures, of_each_call_are_said) {
  const std::vector<outcome> rounds = fail_each(hipErrorInvalidValue);
  EXPECT_GT(expect_statuses(rounds, BITNET_INTERNAL), failing_->calls() / 4)
      << "of " << failing_->calls();
  for (const outcome& o : rounds) {
    EXPECT_TRUE(o.status == BITNET_OK || o.message.find(o.failed) != std::string::npos)
        << o.message;
  }
}

// Memory of the host is the system's.
TEST_P(failures, out_of_memory_is_a_status_of_its_own) {
  expect_statuses(fail_each(hipErrorOutOfMemory), BITNET_OUT_OF_DEVICE_MEMORY, "hipHostMalloc",
                  BITNET_OUT_OF_MEMORY);
  EXPECT_NE(log_.find("no pinned memory for uploads"), std::string::npos);
}

// From there on the runtime gives the same answer to every call.
TEST_P(failures, a_lost_device_is_a_status_of_its_own) {
  for (const hipError_t result : {hipErrorIllegalAddress, hipErrorLaunchFailure})
    expect_statuses(fail_each(result), BITNET_DEVICE_LOST);
}

INSTANTIATE_TEST_SUITE_P(waves_of, failures, testing::Values(0u, 1u),
                         [](const auto& of) { return of.param == 0 ? "32_lanes" : "64_lanes"; });

}  // namespace
}  // namespace bitnet::rocm::test
