// GPUs and accelerators of a machine, read from made-up roots.

#include "probe/hardware.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "../../fakes/loader_fixture.hpp"

namespace bitnet::probe {
namespace {

TEST(hardware, is_seen_on_the_bus_and_by_its_nodes) {
  const struct {
    const char *file, *content;
    bool shown;
    const char* why;
  } rows[] = {{"dev/null", "", false, "nothing"},
              {"sys/bus/pci/devices/0000:00:00.0/class", "0x060000\n", false, "a bridge"},
              {"sys/bus/pci/devices/0000:00:02.0/class", "0x030000\n", true, "a display"},
              {"sys/bus/pci/devices/0000:00:02.0/class", "0x030200\n", true, "a display of none"},
              {"sys/bus/pci/devices/0000:00:0b.0/class", "0x120000\n", true, "an accelerator"},
              {"dev/dri/card0", "", false, "a screen that computes nothing"},
              {"dev/dri/renderD128", "", true, "a node for rendering"},
              {"dev/accel/accel0", "", true, "a node for computing"},
              {"dev/dxg", "", true, "the GPU of WSL's host"}};
  for (const auto& row : rows) {
    const test::folder root;
    root.write(row.file, row.content);
    EXPECT_EQ(shows_devices(root.path()), row.shown) << row.why;
  }
}

TEST(hardware, is_seen_by_an_uncommon_node) {
  const test::folder root;
  std::filesystem::create_directories(root.path() / "dev");
  const auto node = root.path() / "dev/some0";
  if (mknod(node.c_str(), S_IFCHR | 0600, makedev(195, 0)) != 0)
    GTEST_SKIP() << "only root makes nodes";
  EXPECT_TRUE(shows_devices(root.path()));
  std::filesystem::remove(node);
  ASSERT_EQ(mknod(node.c_str(), S_IFCHR | 0600, makedev(4, 64)), 0);
  EXPECT_FALSE(shows_devices(root.path())) << "a serial line";
}

}  // namespace
}  // namespace bitnet::probe
