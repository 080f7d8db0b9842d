// What a manifest requires of the machine, held against made-up roots.

#include "probe/requirements.hpp"

#include <gtest/gtest.h>

#include "../../fakes/loader_fixture.hpp"

namespace bitnet::probe {
namespace {

using plugin::machine_needs;

struct row {
  const char* why;
  machine_needs needs;
  std::vector<const char*> lacking;  // mentioned; none: the machine has it all
};

// A processor, two PCI devices and two device files.
class made_up_machine : public testing::Test {
 protected:
  void SetUp() override {
    root_.write("proc/cpuinfo",
                "processor\t: 0\nvmx flags\t: vnmi\nflags\t\t: fpu sse4_1 avx2\n\n"
                "processor\t: 1\nflags\t\t: fpu sse4_1 avx2 avx512f\n");
    add_device("0000:00:00.0", "0x8086", "0x1237", "0x060000");
    add_device("0000:01:00.0", "0x10de", "0x2b85", "0x030200");
    root_.write("dev/accel/accel0", "");
    root_.write("dev/mine-control", "");
  }
  void add_device(const std::string& at, const char* vendor, const char* device, const char* kind) {
    const std::string folder = "sys/bus/pci/devices/" + at;
    root_.write(folder + "/vendor", std::string(vendor) + "\n");
    root_.write(folder + "/device", std::string(device) + "\n");
    root_.write(folder + "/class", std::string(kind) + "\n");
  }
  [[nodiscard]] plugin::checked<void> check(const machine_needs& of) const {
    return check_requirements(of, {{"libno-such.so.1", "no-such1"}},
                              {.root = root_.path(), .architecture = "x86_64"});
  }
  test::folder root_;
};

TEST_F(made_up_machine, has_what_is_required_or_the_reason_names_it) {
  const row rows[] = {
      {"nothing", {}, {}},
      {"features that it has", {.cpu = {{"x86_64", {"avx2", "fpu"}}}}, {}},
      {"a feature of the second processor alone",
       {.cpu = {{"x86_64", {"avx2", "avx512f"}}}},
       {"a processor with avx512f"}},
      {"a feature of another line", {.cpu = {{"x86_64", {"vnmi"}}}}, {"a processor with vnmi"}},
      {"features of another architecture", {.cpu = {{"aarch64", {"asimddp"}}}}, {}},
      {"a device by vendor and class", {.pci = {"10de:*:03*"}}, {}},
      {"a whole device", {.pci = {"10de:2b85:030200"}}, {}},
      {"one of two devices", {.pci = {"1002:*:*", "10de:*:*"}}, {}},
      {"the vendor of one device and the class of another",
       {.pci = {"8086:*:03*", "10de:*:06*"}},
       {"a PCI device like 8086:*:03* or 10de:*:06*"}},
      {"a device file", {.nodes = {"/dev/mine-control"}}, {}},
      {"a device file by its pattern", {.nodes = {"/dev/accel/*", "/dev/none"}}, {}},
      {"device files that are missing",
       {.nodes = {"/dev/accel/b*", "/dev/none"}},
       {"a device file like /dev/accel/b* or /dev/none"}},
      {"a library that there is", {.libraries = {"libc.so.6"}}, {}},
      {"several things at once",
       {.cpu = {{"x86_64", {"amx_int8"}}}, .libraries = {"libno-such.so.1"}, .pci = {"1002:*:*"}},
       {"a processor with amx_int8; ", "a PCI device like 1002:*:*; ",
        "the library libno-such.so.1"}},
  };
  for (const row& one : rows) {
    SCOPED_TRACE(one.why);
    const auto got = check(one.needs);
    ASSERT_EQ(got.has_value(), one.lacking.empty());
    if (got) continue;
    EXPECT_EQ(got.error().code, plugin::code::select_requires);
    EXPECT_EQ(got.error().status, BITNET_UNAVAILABLE);
    for (const char* text : one.lacking)
      EXPECT_NE(got.error().reason.find(text), std::string::npos) << got.error().reason;
  }
}

TEST_F(made_up_machine, a_missing_library_is_advised_by_its_package) {
  EXPECT_EQ(check({.libraries = {"libno-such.so.1"}}).error().advice(), "install no-such1");
  EXPECT_NE(check({.libraries = {"libother.so.1"}}).error().advice().find("give the machine"),
            std::string::npos);
}

TEST(requirements, that_cannot_be_looked_up_are_not_missing) {
  const test::folder empty;
  const machine on{.root = empty.path(), .architecture = "x86_64"};
  EXPECT_TRUE(check_requirements({.cpu = {{"x86_64", {"avx2"}}}, .pci = {"10de:*:*"}}, {}, on));
  EXPECT_FALSE(check_requirements({.nodes = {"/dev/none"}}, {}, on))
      << "/dev is looked at as it is";
}

}  // namespace
}  // namespace bitnet::probe
