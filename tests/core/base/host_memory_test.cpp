// What of the machine's memory this process may still take.

#include "base/host_memory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "../../scratch_folder.hpp"

namespace bitnet {
namespace {

constexpr uint64_t mib = 1U << 20;

const std::string plain = "MemTotal:  8192 kB\nMemFree:  100 kB\nMemAvailable:    4096 kB\n";

struct machine_row {
  const char* why;
  std::vector<std::pair<std::string, std::string>> files;
  uint64_t free;
};

std::ostream& operator<<(std::ostream& out, const machine_row& r) {
  return out << r.why;
}

class free_memory : public testing::TestWithParam<machine_row> {};

TEST_P(free_memory, is_the_tightest_of_what_is_known) {
  const test::scratch_folder root;
  for (const auto& [name, content] : GetParam().files) root.write(name, content);
  EXPECT_EQ(free_host_memory(root.path()), GetParam().free);
}

const machine_row machines[] = {
    {"no /proc", {}, 0},
    {"a kernel without the estimate",
     {{"proc/meminfo", "MemTotal: 8192 kB\nMemFree: 100 kB\n"}},
     0},
    {"a name that only begins alike", {{"proc/meminfo", "MemAvailableX: 4096 kB\n"}}, 0},
    {"no number", {{"proc/meminfo", "MemAvailable: many kB\n"}}, 0},
    {"more than bytes can count", {{"proc/meminfo", "MemAvailable: 99999999999999999 kB\n"}}, 0},
    {"no groups", {{"proc/meminfo", plain}}, 4 * mib},
    {"version 2 without a limit",
     {{"proc/meminfo", plain},
      {"proc/self/cgroup", "0::/a/b\n"},
      {"sys/fs/cgroup/a/b/memory.max", "max\n"},
      {"sys/fs/cgroup/a/b/memory.current", "1048576\n"}},
     4 * mib},
    {"version 2, the group's own limit",
     {{"proc/meminfo", plain},
      {"proc/self/cgroup", "0::/a/b\n"},
      {"sys/fs/cgroup/a/b/memory.max", "3145728\n"},
      {"sys/fs/cgroup/a/b/memory.current", "1048576\n"}},
     2 * mib},
    {"a group above it is tighter",
     {{"proc/meminfo", plain},
      {"proc/self/cgroup", "0::/a/b\n"},
      {"sys/fs/cgroup/a/b/memory.max", "3145728\n"},
      {"sys/fs/cgroup/a/b/memory.current", "1048576\n"},
      {"sys/fs/cgroup/a/memory.max", "3145728\n"},
      {"sys/fs/cgroup/a/memory.current", "2097152\n"}},
     1 * mib},
    {"unused pages of files are given up first",
     {{"proc/meminfo", plain},
      {"proc/self/cgroup", "0::/a\n"},
      {"sys/fs/cgroup/a/memory.max", "3145728\n"},
      {"sys/fs/cgroup/a/memory.current", "2097152\n"},
      {"sys/fs/cgroup/a/memory.stat", "active_file 5\ninactive_file 1048576\n"}},
     2 * mib},
    {"the group is over its limit",
     {{"proc/meminfo", plain},
      {"proc/self/cgroup", "0::/a\n"},
      {"sys/fs/cgroup/a/memory.max", "1048576\n"},
      {"sys/fs/cgroup/a/memory.current", "2097152\n"}},
     0},
    {"version 1",
     {{"proc/meminfo", plain},
      {"proc/self/cgroup", "4:memory:/a\n3:cpu,cpuacct:/a\n"},
      {"sys/fs/cgroup/memory/a/memory.limit_in_bytes", "3145728\n"},
      {"sys/fs/cgroup/memory/a/memory.usage_in_bytes", "2097152\n"},
      {"sys/fs/cgroup/memory/a/memory.stat", "inactive_file 0\ntotal_inactive_file 524288\n"}},
     mib + mib / 2},
};

INSTANTIATE_TEST_SUITE_P(rows, free_memory, testing::ValuesIn(machines));

TEST(free_memory_here, is_known_and_less_than_the_machine_has) {
  EXPECT_GT(free_host_memory(), 0U);
  const auto all =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  EXPECT_LT(free_host_memory(), all);
}

}  // namespace
}  // namespace bitnet
