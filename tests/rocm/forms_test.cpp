// Forms of kernels are compared when a device is opened: one that is wrong, does not end or loses
// the device is named in the log and no longer listed.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "bitnet/sdk/host.hpp"
#include "code_objects.hpp"
#include "device_facts.hpp"
#include "form_trials.hpp"
#include "kernel_table.hpp"
#include "on_stand_in.hpp"
#include "stand_ins/forms_left_out.hpp"

namespace bitnet::rocm::test {
namespace {

using bitnet::test::said_in_a_process;

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

class opened : public testing::TestWithParam<uint32_t> {
 protected:
  static bitnet::test::formed_backend backend() {
    bitnet::test::formed_backend out;
    out.open_platform = [](const gpu::form_use& use, const log_function& log, std::string& why) {
      return open_platform(log, why, use);
    };
    if (const char* usual = std::getenv("BITNET_STAND_IN")) out.settings = usual;
    out.index = GetParam();
    out.device = "Stand-in " + std::to_string(out.index) + " (no GPU)";
    out.api = "rocm";
    out.version = "the version of ROCm";
    out.all = optional_forms();
    out.listed = forms_of(target_on(out));
    return out;
  }
  static std::string target_on(const bitnet::test::formed_backend& on) {
    return said_in_a_process(on.settings.c_str(), [&on] {
      std::string why;
      const auto made = open_quietly(why);
      return made ? target_of(made->devices()[on.index].arch) : why;
    });
  }
};

TEST_P(opened, without_faults_says_nothing) {
  const auto out = backend().opened("");
  EXPECT_EQ(out.words, "opened");
  EXPECT_EQ(out.listed, backend().listed);
  EXPECT_GE(out.listed.size(), 2u);
}
TEST_P(opened, without_the_forms_that_have_other_bits) {
  bitnet::test::expect_wrong_forms_left_out(backend());
}
TEST_P(opened, without_a_form_that_never_ends) {
  bitnet::test::expect_hanging_forms_left_out(backend());
}
TEST_P(opened, without_a_form_that_loses_the_device) {
  bitnet::test::expect_losing_forms_left_out(backend());
}
TEST_P(opened, does_not_run_forms_that_are_off) {
  bitnet::test::expect_forms_off_do_not_run(backend(), form_trials());
}
TEST_P(opened, behind_a_probe_compares_nothing) {
  bitnet::test::expect_nothing_compared_behind_a_probe(backend());
}
// Plain kernels judge, and are the core's to test.
TEST_P(opened, when_the_plain_kernel_is_wrong) {
  EXPECT_NE(backend().opened("wrong=linear_ternary_1").words.find("linear_ternary_dots.rocm has"),
            std::string::npos);
}

// The runtime fails at some of the calls that looking takes: opening the device fails with it, and
// nothing is left. What went wrong with that, in a line each.
std::string said_of_failures(uint32_t index) {
  const auto* stand_in = bitnet::test::find_controls(usual_runtimes[0]);
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
  const std::string settings = backend().with("at_once=1");
  EXPECT_EQ(said_in_a_process(settings.c_str(), [] { return said_of_failures(GetParam()); }), "");
}

// What a process with these settings of the host and of the user does: "<checks> <bounded>", the
// forms that are off, and what is logged.
std::string use_with(const gpu::settings& user) {
  static std::string logged;
  logged.clear();
  bitnet_host_v0 services{};
  services.log = [](void*, uint32_t, bitnet_str component, bitnet_str message) {
    logged += "[" + std::string(sdk::to_view(component)) + ": " +
              std::string(sdk::to_view(message)) + "]";
  };
  bitnet_error error{};
  error.struct_size = sizeof error;
  gpu::form_use use;
  if (gpu::read_form_use(sdk::host(&services), user, "rocm", optional_forms(), use,
                         {&error, "test"}) != BITNET_OK)
    return error.message;
  std::string out = std::to_string(use.checks) + " " + std::to_string(use.bounded);
  for (const std::string& one : use.off) out += " " + one;
  return out + logged;
}
TEST(settings_of_forms, say_what_a_process_compares_and_uses) {
  EXPECT_EQ(use_with({{"purpose", "probe"}}), "1 1");
  EXPECT_EQ(use_with({{"purpose", "probe"}, {"probed", "yes"}}), "1 1");
  EXPECT_EQ(use_with({{"purpose", "load"}, {"probed", "yes"}}), "0 0");
  EXPECT_EQ(use_with({{"purpose", "load"}, {"checks", "off"}}), "0 0");
  for (const char* purpose : {"load", "conformance"})
    EXPECT_EQ(use_with({{"purpose", purpose}}),
              "1 0[rocm: no probe compared the forms of kernels; this process does when a device "
              "is opened]");
  EXPECT_EQ(use_with({{"purpose", "load"},
                      {"probed", "yes"},
                      {"disable", "delta_rule_64.rocm,linear_ternary_dots.cuda,rope.rocm"}}),
            "0 0 delta_rule_64");
  EXPECT_NE(use_with({{"checks", "no"}}).find("setting checks is 'no'; expected on or off"),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(waves_of, opened, testing::Values(0u, 1u),
                         [](const auto& of) { return of.param == 0 ? "32_lanes" : "64_lanes"; });

}  // namespace
}  // namespace bitnet::rocm::test
