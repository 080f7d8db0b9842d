// Each kernel that another one can stand in for is looked at when a device is opened: where bits
// differ, the log names it and the device does without it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "code_objects.hpp"
#include "device_facts.hpp"
#include "in_a_process.hpp"
#include "kernel_table.hpp"
#include "on_stand_in.hpp"

namespace bitnet::rocm::test {
namespace {

// Those of a device that has code of the target.
forms forms_of(const std::string& target) {
  forms out;
  const forms matrix = matrix_forms();
  for (const std::string& one : optional_forms())
    if (has_code(target, matrix_part) ||
        std::find(matrix.begin(), matrix.end(), one) == matrix.end())
      out.push_back(one);
  return out;
}

// Those of the test, and another.
std::string settings_with(const std::string& setting) {
  const char* usual = std::getenv("BITNET_STAND_IN");
  return (usual ? std::string(usual) + "," : std::string()) + setting;
}

class opened : public testing::TestWithParam<uint32_t> {
 protected:
  // What is logged, each line in brackets, when the device is opened in a process of its own.
  static std::string logged(const std::string& setting) {
    return said_with(settings_with(setting).c_str(), [] {
      std::string out, why;
      const auto made = open_platform(
          [&out](uint32_t, const std::string& line) { out += "[" + line + "]"; }, why);
      if (!made) return why;
      bitnet_error error{};
      error.struct_size = sizeof error;
      std::unique_ptr<gpu::device> device;
      const bitnet_status s = made->open(GetParam(), device, {&error, "test"});
      return s == BITNET_OK ? out : out + " " + error.message;
    });
  }
  static std::string target() {
    return said_with(settings_with("memory=512").c_str(), [] {
      std::string why;
      const auto made = open_quietly(why);
      return made ? target_of(made->devices()[GetParam()].arch) : why;
    });
  }
};

TEST_P(opened, without_faults_says_nothing) {
  EXPECT_EQ(logged("memory=512"), "");
}
TEST_P(opened, without_the_forms_that_have_other_bits) {
  const std::string name = "Stand-in " + std::to_string(GetParam()) + " (no GPU): ";
  const forms mine = forms_of(target());
  EXPECT_GE(mine.size(), 2u);
  for (const std::string& form : optional_forms()) {
    const bool has = std::find(mine.begin(), mine.end(), form) != mine.end();
    EXPECT_EQ(logged("wrong=" + form),
              has ? "[" + name + form +
                        " has other bits than the kernel that it stands in for, which is used "
                        "instead; report it with the version of ROCm]"
                  : "");
  }
}
// Plain kernels judge, and are the core's to test.
TEST_P(opened, when_the_plain_kernel_is_wrong) {
  EXPECT_NE(logged("wrong=linear_ternary_1").find("linear_ternary_dots has"), std::string::npos);
}

// The runtime fails at some of the calls that looking takes: opening the device fails with it, and
// nothing is left. What went wrong with that, in a line each.
std::string said_of_failures(uint32_t index) {
  const controls* stand_in = find_controls();
  if (!stand_in) return "the stand-in is not where the loader looks";
  std::string out, why;
  const auto made = open_platform([](uint32_t, const std::string&) {}, why);
  if (!made) return why;
  bitnet_error error{};
  error.struct_size = sizeof error;
  const auto opens = [&] {
    std::unique_ptr<gpu::device> device;
    return made->open(index, device, {&error, "test"});
  };
  stand_in->fail(0, 0);
  if (opens() != BITNET_OK) return error.message;
  const uint64_t calls = stand_in->calls();
  std::set<std::string> seen;
  for (uint64_t n = 1; n <= calls; n += 1 + calls / 20) {
    stand_in->fail(n, hipErrorInvalidValue);
    const bitnet_status s = opens();
    if (stand_in->objects() != 0) out += std::string("left over: ") + stand_in->failed() + "\n";
    if (s == BITNET_OK) continue;  // a call that gives back
    if (s != BITNET_INTERNAL) out += std::string(error.message) + "\n";
    seen.insert(stand_in->failed());
  }
  stand_in->fail(0, 0);
  if (seen.size() < 4) out += "too few of " + std::to_string(calls) + " calls failed\n";
  if (opens() != BITNET_OK) out += std::string(error.message) + "\n";
  return out;
}
TEST_P(opened, unless_a_call_fails) {
  const std::string settings = settings_with("at_once=1");
  EXPECT_EQ(said_with(settings.c_str(), [] { return said_of_failures(GetParam()); }), "");
}

INSTANTIATE_TEST_SUITE_P(waves_of, opened, testing::Values(0u, 1u),
                         [](const auto& of) { return of.param == 0 ? "32_lanes" : "64_lanes"; });

}  // namespace
}  // namespace bitnet::rocm::test
