// What the processor is doing, read from planted roots: what a file does not say stays unknown.

#include "meter.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "../../scratch_folder.hpp"
#include "bitnet/abi/answers.h"

namespace bitnet::cpu {
namespace {

using file_list = std::vector<std::pair<std::string, std::string>>;

class planted {
 public:
  explicit planted(const file_list& files, std::vector<uint32_t> cpus = {0, 1})
      : meter_(std::move(cpus), root_.path().string() + "/") {
    plant(files);
  }
  void plant(const file_list& files) {
    for (const auto& [name, text] : files) root_.write(name, text);
  }
  bitnet_device_status read() {
    bitnet_device_status s{};
    s.struct_size = sizeof s;
    meter_.read(s);
    const char* wrong = bitnet_wrong_device_status(&s);
    EXPECT_EQ(wrong, nullptr) << (wrong ? wrong : "");
    return s;
  }

 private:
  test::scratch_folder root_;
  meter meter_;
};

TEST(meter, knows_nothing_where_nothing_is_reported) {
  EXPECT_EQ(planted({}).read().known, 0u);
}

struct memory_row {
  const char* why;
  file_list files;
  uint64_t total, free;  // 0, 0: unknown
};

const std::string group = "proc/self/cgroup", top = "sys/fs/cgroup/";
const std::string usual = "MemTotal: 8 kB\nMemFree: 1 kB\nMemAvailable:  4 kB\n";

TEST(meter, memory_is_unknown_unless_both_numbers_are_valid) {
  const memory_row rows[] = {
      {"plain", {{"proc/meminfo", usual}}, 8192, 4096},
      {"a kernel without the estimate",
       {{"proc/meminfo", "MemTotal: 8 kB\nMemFree: 1 kB\n"}},
       0,
       0},
      {"no total", {{"proc/meminfo", "MemAvailable: 8 kB\n"}}, 0, 0},
      {"a total of nothing", {{"proc/meminfo", "MemTotal: 0 kB\nMemAvailable: 0 kB\n"}}, 0, 0},
      {"more free than there is", {{"proc/meminfo", "MemTotal: 8 kB\nMemAvailable: 9 kB\n"}}, 0, 0},
      {"no number", {{"proc/meminfo", "MemTotal: all kB\nMemAvailable: 9 kB\n"}}, 0, 0},
      {"a number with a tail", {{"proc/meminfo", "MemTotal: 8x kB\nMemAvailable: 4 kB\n"}}, 0, 0},
      {"a sum that wraps",
       {{"proc/meminfo", "MemTotal: 18446744073709551615 kB\nMemAvailable: 1 kB\n"}},
       0,
       0},
      {"no end of the line", {{"proc/meminfo", "MemAvailable: 4 kB\nMemTotal: 8"}}, 8192, 4096},
      {"no bytes but zeros", {{"proc/meminfo", std::string(5000, '\0')}}, 0, 0},
      {"a line without an end", {{"proc/meminfo", std::string(3 << 20, 'x') + "\n" + usual}}, 0, 0},
      {"a group with a limit, of which pages of files are given up first",
       {{"proc/meminfo", usual},
        {group, "0::/a\n"},
        {top + "a/memory.max", "3000\n"},
        {top + "a/memory.current", "2000\n"},
        {top + "a/memory.stat", "anon 1\ninactive_file 500\n"}},
       3000,
       1500},
      {"the group above is tighter",
       {{"proc/meminfo", usual},
        {group, "0::/a/b\n"},
        {top + "a/memory.max", "1000\n"},
        {top + "a/memory.current", "1000\n"},
        {top + "a/b/memory.max", "max\n"},
        {top + "a/b/memory.current", "5\n"}},
       1000,
       0},
      {"more used than allowed",
       {{"proc/meminfo", usual},
        {group, "0::/a\n"},
        {top + "a/memory.max", "10\n"},
        {top + "a/memory.current", "20\n"}},
       10,
       0},
      {"a path that leads out of the folder",
       {{"proc/meminfo", usual},
        {group, "0::/../../x\n"},
        {"x/memory.max", "10\n"},
        {"x/memory.current", "1\n"}},
       8192,
       4096},
      {"version 1 only", {{"proc/meminfo", usual}, {group, "4:memory:/a\n"}}, 8192, 4096},
  };
  for (const memory_row& row : rows) {
    SCOPED_TRACE(row.why);
    const bitnet_device_status s = planted(row.files).read();
    EXPECT_EQ(s.known, row.total == 0 ? 0u : BITNET_STATUS_MEMORY);
    EXPECT_EQ(s.memory_total_bytes, row.total);
    EXPECT_EQ(s.memory_free_bytes, row.free);
  }
}

struct load_row {
  const char* why;
  std::string before, after;
  int percent;  // -1: unknown
};

TEST(meter, load_is_that_since_the_call_before) {
  const load_row rows[] = {
      {"a quarter", "cpu0 0 0 0 0 0 0 0 0\n", "cpu0 20 3 2 70 5 0 0 0 9 9\n", 25},
      {"both CPUs, and not that of others", "cpu 1\ncpu0 0 0 0 0\ncpu1 0 0 0 0\ncpu2 0 0 0 0\n",
       "cpu 9\ncpu0 100 0 0 0\ncpu1 0 0 0 100\ncpu2 999 0 0 0\n", 50},
      {"nothing to do", "cpu0 5 0 0 0\n", "cpu0 5 0 0 100\n", 0},
      {"all there is", "cpu0 5 0 0 7\n", "cpu0 105 0 0 7\n", 100},
      {"too short a time", "cpu0 5 0 0 7\n", "cpu0 9 0 0 7\n", -1},
      {"no time at all", "cpu0 5 0 0 7\n", "cpu0 5 0 0 7\n", -1},
      {"a CPU that went away", "cpu0 500 0 0 7\ncpu1 500 0 0 7\n", "cpu0 510 0 0 7\n", -1},
      {"idle time that was corrected", "cpu0 5 0 0 90\n", "cpu0 105 0 0 80\n", 100},
      {"only others'", "cpu7 5 0 0 7\n", "cpu7 105 0 0 7\n", -1},
      {"too few numbers", "cpu0 5 0\n", "cpu0 105 0\n", -1},
      {"numbers below 0", "cpu0 0 0 0 0\n", "cpu0 -5 0 0 900\n", -1},
      {"numbers that would wrap", "cpu0 0 0 0 0\n",
       "cpu0 18446744073709551615 18446744073709551615 0 0\n", -1},
      {"no numbers", "cpu0 x y z w\n", "cpu0 x y z w\n", -1},
  };
  for (const load_row& row : rows) {
    SCOPED_TRACE(row.why);
    planted p({{"proc/stat", row.before}});
    EXPECT_EQ(p.read().known, 0u) << "there was no call before";
    p.plant({{"proc/stat", row.after}});
    const bitnet_device_status s = p.read();
    EXPECT_EQ(s.known, row.percent < 0 ? 0u : BITNET_STATUS_UTILISATION);
    EXPECT_EQ(s.utilisation_percent, row.percent < 0 ? 0u : static_cast<uint32_t>(row.percent));
  }
}

// Frequent reads still report the load, each over the time since the last report.
TEST(meter, load_of_short_times_is_added_up) {
  planted p({{"proc/stat", "cpu0 0 0 0 0\n"}}, {0});
  p.read();
  p.plant({{"proc/stat", "cpu0 4 0 0 0\n"}});
  EXPECT_EQ(p.read().known, 0u);
  p.plant({{"proc/stat", "cpu0 4 0 0 4\n"}});
  EXPECT_EQ(p.read().utilisation_percent, 50u);
  EXPECT_EQ(p.read().utilisation_percent, 50u) << "a read at once reports the same";
  p.plant({{"proc/stat", "cpu0 4 0 0 1\n"}});
  EXPECT_EQ(p.read().known, 0u) << "what it was before a correction is not known to hold";
}

TEST(meter, the_clock_is_the_mean_of_the_used_cpus) {
  const std::string at = "sys/devices/system/cpu/cpu";
  const struct {
    const char* why;
    file_list files;
    uint32_t khz;  // 0: unknown
  } rows[] = {
      {"the mean of ours",
       {{at + "0/cpufreq/scaling_cur_freq", "1000\n"},
        {at + "1/cpufreq/scaling_cur_freq", "2000\n"},
        {at + "2/cpufreq/scaling_cur_freq", "9000\n"}},
       1500},
      {"one without a reading",
       {{at + "0/cpufreq/scaling_cur_freq", "<unknown>\n"},
        {at + "1/cpufreq/scaling_cur_freq", "2000\n"}},
       2000},
      {"a clock of 0", {{at + "0/cpufreq/scaling_cur_freq", "0\n"}}, 0},
      {"a clock that is none", {{at + "0/cpufreq/scaling_cur_freq", "4294967296\n"}}, 0},
      {"a virtual machine",
       {{"proc/cpuinfo", "processor\t: 1\ncpu MHz\t\t: 2445.406\n\nprocessor\t: 5\ncpu MHz: 9\n"}},
       2'445'000},
      {"another architecture", {{"proc/cpuinfo", "processor : 0\nBogoMIPS : 50.00\n"}}, 0},
      {"words in place of numbers", {{"proc/cpuinfo", "processor : 0\ncpu MHz : fast\n"}}, 0},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    const bitnet_device_status s = planted(row.files).read();
    EXPECT_EQ(s.known, row.khz == 0 ? 0u : BITNET_STATUS_CLOCK);
    EXPECT_EQ(s.clock_khz, row.khz);
  }
}

TEST(meter, the_temperature_is_that_of_the_hottest_processor) {
  const std::string hwmon = "sys/class/hwmon/hwmon", zone = "sys/class/thermal/thermal_zone";
  const struct {
    const char* why;
    file_list files;
    bool known;
    int32_t millicelsius;
  } rows[] = {
      {"the hotter of two processors, and not a disk",
       {{hwmon + "0/name", "drive\n"},
        {hwmon + "0/temp1_input", "90000\n"},
        {hwmon + "1/name", "coretemp\n"},
        {hwmon + "1/temp1_input", "41000\n"},
        {hwmon + "2/name", "coretemp\n"},
        {hwmon + "2/temp1_input", "43000\n"}},
       true,
       43000},
      {"below 0",
       {{hwmon + "0/name", "k10temp\n"}, {hwmon + "0/temp1_input", "-500\n"}},
       true,
       -500},
      {"a zone", {{zone + "3/type", "cpu-thermal\n"}, {zone + "3/temp", "50000\n"}}, true, 50000},
      {"a sensor that is out of order",
       {{hwmon + "0/name", "coretemp\n"}, {hwmon + "0/temp1_input", "2147483647\n"}},
       false,
       0},
      {"no number",
       {{hwmon + "0/name", "coretemp\n"}, {hwmon + "0/temp1_input", "hot\n"}},
       false,
       0},
      {"no sensor", {{hwmon + "0/name", "coretemp\n"}}, false, 0},
      {"a zone of something else",
       {{zone + "0/type", "acpitz\n"}, {zone + "0/temp", "1\n"}},
       false,
       0},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    const bitnet_device_status s = planted(row.files).read();
    EXPECT_EQ(s.known, row.known ? BITNET_STATUS_TEMPERATURE : 0u);
    EXPECT_EQ(s.temperature_millicelsius, row.millicelsius);
  }
}

TEST(meter, of_this_machine_is_possible) {
  meter here(usable_cpus());
  for (int i = 0; i < 3; ++i) {
    bitnet_device_status s{};
    s.struct_size = sizeof s;
    here.read(s);
    EXPECT_EQ(bitnet_wrong_device_status(&s), nullptr);
  }
}

}  // namespace
}  // namespace bitnet::cpu
