// What is known of devices before one is opened, and the reasons that are given where none is used.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "code_objects.hpp"
#include "device_facts.hpp"
#include "gpu-common/device_text.hpp"
#include "on_stand_in.hpp"
#include "stand_ins/in_a_process.hpp"

namespace bitnet::rocm::test {
namespace {

using bitnet::test::said_in_a_process;

std::string reason(const char* settings, const char* kfd = "/dev/null") {
  return said_in_a_process(settings, [kfd] {
    std::string why;
    const auto made =
        open_platform([](uint32_t, const std::string&) {}, why, {.checks = false}, kfd);
    return made ? "it works" : why;
  });
}

TEST(rocm_platform, names_of_targets) {
  EXPECT_EQ(target_of("gfx90a:sramecc+:xnack-"), "gfx90a");
  EXPECT_EQ(target_of("gfx1030"), "gfx1030");
  for (const char* none : {"", "gfx", "gfx9", "navi21", "gfx10 30", "gfx90A"})
    EXPECT_EQ(target_of(none), "") << none;
}

// The runtime adds the features that a device has switched on or off.
TEST(rocm_platform, devices_with_features) {
  const std::string said =
      said_in_a_process("targets=gfx90a:sramecc+:xnack-/gfx1030/gfx90a:sramecc-:xnack+", [] {
        std::string out, why;
        const auto made = open_quietly(why);
        if (!made) return why;
        for (const gpu::facts& one : made->devices()) out += one.arch + "\n";
        return out;
      });
  EXPECT_EQ(said, "gfx90a:sramecc+:xnack-\ngfx1030\ngfx90a:sramecc-:xnack+\n");
}

TEST(rocm_platform, texts_of_identities) {
  EXPECT_EQ(gpu::uuid_text("\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef"),
            "01234567-89ab-cdef-0123-456789abcdef");
  EXPECT_EQ(gpu::lower_case("0000:0A:FF.1"), "0000:0a:ff.1");
}

TEST(rocm_platform, versions_are_written_as_major_and_minor) {
  EXPECT_EQ(version_text(50220730), "5.2");
  EXPECT_EQ(version_text(70151831), "7.1");
}

TEST(rocm_platform, two_devices_of_two_kinds) {
  const std::string said = said_in_a_process("", [] {
    setenv("HSA_OVERRIDE_GFX_VERSION", "10.3.0", 1);
    std::string out, why;
    const auto made = open_quietly(why);
    if (!made) return why;
    for (const gpu::facts& one : made->devices())
      out += one.name + "|" + one.arch + "|" + one.uuid + "|" + one.pci_address + "|" +
             one.driver_version + "|" + std::to_string(one.memory_total_bytes) + "|" +
             std::to_string(one.compute_units) + "|" +
             std::to_string(one.capabilities.shared_memory_bytes) + "\n";
    return out;
  });
  constexpr const char* rest = "|HIP 7.0 with HSA_OVERRIDE_GFX_VERSION=10.3.0|1073741824|2|65280\n";
  EXPECT_EQ(said, std::string("Stand-in 0 (no GPU)|gfx1030|GPU-0123456789abcdef|ffff:00:00.0") +
                      rest +
                      "Stand-in 1 (no GPU)|gfx90a:sramecc+:xnack-|GPU-1123456789abcdef|"
                      "ffff:01:00.0" +
                      rest);
}

TEST(rocm_platform, a_target_without_code_is_named) {
  const std::string said = reason("targets=gfx1030/gfx1250");
  ASSERT_EQ(said, "it works");  // by the other one
  const std::string none = reason("targets=gfx1250:xnack-");
  EXPECT_NE(none.find("gfx1250 is not among those that this build has code for: "),
            std::string::npos)
      << none;
  EXPECT_NE(none.find("gfx90a"), std::string::npos) << none;
  EXPECT_NE(none.find("build with BITNET_ROCM_TARGETS=gfx1250"), std::string::npos) << none;
  EXPECT_FALSE(has_code("gfx1250"));
  EXPECT_FALSE(has_code("gfx701"));
  EXPECT_FALSE(has_code("gfx"));
}

TEST(rocm_platform, each_failure_is_reported_with_its_reason) {
  const struct {
    const char *settings, *kfd, *says;
  } cases[] = {
      {"targets=", "/nowhere/kfd", "there is no /nowhere/kfd"},
      {"targets=", "/dev/null", "see whether rocminfo lists one"},
      {"init=100", "/nowhere/kfd", "there is no /nowhere/kfd"},
      {"init=3", "/dev/null", "hipInit failed with STAND_IN_ERROR_3 (3)"},
      {"count=999", "/dev/null", "does not count its devices: STAND_IN_ERROR_999 (999)"},
      {"properties=1", "/dev/null", "does not name its architecture"},
  };
  for (const auto& c : cases) {
    const std::string said = reason(c.settings, c.kfd);
    EXPECT_NE(said.find(c.says), std::string::npos) << c.settings << ": " << said;
  }
}

TEST(rocm_platform, what_hides_devices_is_named) {
  setenv("ROCR_VISIBLE_DEVICES", "7", 1);
  const std::string said = reason("targets=");
  unsetenv("ROCR_VISIBLE_DEVICES");
  EXPECT_NE(said.find("ROCR_VISIBLE_DEVICES=7"), std::string::npos) << said;
}

TEST(rocm_platform, a_node_that_may_not_be_opened) {
  const std::string said = said_in_a_process("", [] {
    constexpr uid_t nobody = 65534;
    if (geteuid() == 0 && setuid(nobody) != 0) return std::string("the user stays root");
    return no_device("/etc/shadow");
  });
  EXPECT_NE(said.find("groups render and video"), std::string::npos) << said;
}

}  // namespace
}  // namespace bitnet::rocm::test
