#include "meter.hpp"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string_view>

namespace bitnet::cpu {
namespace {

constexpr size_t most_bytes = size_t{1} << 20;  // of a file
constexpr uint32_t most_clocks = 8, most_sensors = 64;
// A second has 100 ticks. With fewer ticks than these per CPU the load would be too coarse.
constexpr uint64_t least_ticks = 5;

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string out;
  for (char part[4096]; out.size() < most_bytes && file;) {
    file.read(part, sizeof part);
    out.append(part, static_cast<size_t>(file.gcount()));
  }
  return out;
}

// Removes and returns the text before `end`; all of it if there is no `end`.
std::string_view take(std::string_view& text, char end) {
  const size_t at = text.find(end);
  const std::string_view out = text.substr(0, at);
  text.remove_prefix(at == text.npos ? text.size() : at + 1);
  return out;
}

// The next word, "" at the end.
std::string_view word(std::string_view& text) {
  const size_t first = text.find_first_not_of(" \t\n");
  text.remove_prefix(first == text.npos ? text.size() : first);
  const size_t size = std::min(text.find_first_of(" \t\n"), text.size());
  const std::string_view out = text.substr(0, size);
  text.remove_prefix(size);
  return out;
}

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number out{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

// The number in a file that contains nothing else.
template <class Number>
std::optional<Number> number_in(const std::string& path) {
  const std::string all = content(path);
  std::string_view text = all;
  return number<Number>(word(text));
}

// The number after `name` in lines "name number ...".
std::optional<uint64_t> number_at(std::string_view lines, std::string_view name) {
  while (!lines.empty()) {
    std::string_view line = take(lines, '\n');
    if (word(line) == name) return number<uint64_t>(word(line));
  }
  return std::nullopt;
}

}  // namespace

std::vector<uint32_t> usable_cpus() {
  std::vector<uint32_t> out;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return out;
  for (uint32_t i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set)) out.push_back(i);
  return out;
}

bool has_room_for_copies(uint64_t bytes) {
  constexpr uint64_t streamed = uint64_t{64} << 20;  // smaller ones may stay in caches
  if (bytes < streamed) return false;
  bitnet_device_status now{};
  meter({}).add_memory(now);
  return (now.known & BITNET_STATUS_MEMORY) != 0 && now.memory_free_bytes / 3 >= bytes;
}

void meter::read(bitnet_device_status& out) {
  add_memory(out);
  add_load(out);
  add_clock(out);
  add_temperature(out);
}

// Of control groups (version 2) the tightest limit counts, because the kernel kills a process that
// exceeds it. Before that it reclaims unused pages of files.
void meter::add_memory(bitnet_device_status& out) const {
  const std::string all = content(root_ + "proc/meminfo");
  const auto total = number_at(all, "MemTotal:"), free = number_at(all, "MemAvailable:");
  if (!total || !free || *total == 0 || *total > UINT64_MAX / 1024 || *free > *total) return;
  uint64_t has = *total * 1024, left = *free * 1024;
  const std::string groups = content(root_ + "proc/self/cgroup");
  for (std::string_view lines = groups; !lines.empty();) {
    std::string_view line = take(lines, '\n');
    if (!line.starts_with("0::/")) continue;
    line.remove_prefix(4);
    for (std::string group(line); group.find("..") == group.npos;) {
      const std::string folder = root_ + "sys/fs/cgroup/" + group + (group.empty() ? "" : "/");
      const auto most = number_in<uint64_t>(folder + "memory.max");
      const auto used = number_in<uint64_t>(folder + "memory.current");
      if (most && used && *most > 0) {
        const uint64_t idle =
            number_at(content(folder + "memory.stat"), "inactive_file").value_or(0);
        const uint64_t kept = *used - std::min(*used, idle);
        has = std::min(has, *most);
        left = std::min(left, *most - std::min(*most, kept));
      }
      if (group.empty()) break;
      const size_t parent = group.rfind('/');
      group.resize(parent == group.npos ? 0 : parent);
    }
  }
  out.known |= BITNET_STATUS_MEMORY;
  out.memory_total_bytes = has;
  out.memory_free_bytes = std::min(left, has);
}

// "cpu3 user nice system idle iowait irq softirq steal ..."; user and nice include guests' time.
std::optional<meter::ticks> meter::count_ticks() const {
  const std::string all = content(root_ + "proc/stat");
  ticks out;
  bool found = false;
  for (std::string_view lines = all; !lines.empty();) {
    std::string_view line = take(lines, '\n');
    const std::string_view name = word(line);
    if (!name.starts_with("cpu")) continue;
    const auto cpu = number<uint32_t>(name.substr(3));
    if (!cpu || std::find(cpus_.begin(), cpus_.end(), *cpu) == cpus_.end()) continue;
    uint64_t sum = 0, idle = 0;
    for (int i = 0; i < 8; ++i) {
      const std::string_view field = word(line);
      if (field.empty() && i >= 4) break;  // older kernels have fewer
      const auto n = number<uint64_t>(field);
      constexpr uint64_t most = uint64_t{1} << 48;  // a sum of them cannot wrap
      if (!n || *n > most) return std::nullopt;
      sum += *n;
      if (i == 3 || i == 4) idle += *n;
    }
    found = true;
    out.total += sum;
    out.busy += sum - idle;
  }
  if (!found) return std::nullopt;
  return out;
}

void meter::add_load(bitnet_device_status& out) {
  const auto now = count_ticks();
  const std::scoped_lock lock(mutex_);
  // An offline CPU takes its ticks away, and the kernel may correct the time of waiting for disks.
  if (!now || !before_ || now->total < before_->total || now->busy < before_->busy) {
    before_ = now;
    last_percent_.reset();
    return;
  }
  const uint64_t total = now->total - before_->total;
  if (total >= least_ticks * cpus_.size()) {
    const uint64_t busy = std::min(now->busy - before_->busy, total);
    last_percent_ = static_cast<uint32_t>((100 * busy + total / 2) / total);
    before_ = now;
  }
  if (!last_percent_) return;
  out.known |= BITNET_STATUS_UTILISATION;
  out.utilisation_percent = *last_percent_;
}

void meter::add_clock(bitnet_device_status& out) const {
  uint64_t sum = 0, n = 0;
  const auto add = [&](uint64_t khz) {
    constexpr uint64_t most = 100'000'000;
    if (khz == 0 || khz > most) return;
    sum += khz;
    ++n;
  };
  for (size_t i = 0; i < std::min<size_t>(cpus_.size(), most_clocks); ++i)
    add(number_in<uint64_t>(root_ + "sys/devices/system/cpu/cpu" + std::to_string(cpus_[i]) +
                            "/cpufreq/scaling_cur_freq")
            .value_or(0));
  if (n == 0) {  // in virtual machines: "processor : 3", then "cpu MHz : 2445.406"
    const std::string all = content(root_ + "proc/cpuinfo");
    bool counts = false;
    for (std::string_view lines = all; !lines.empty() && n < most_clocks;) {
      std::string_view line = take(lines, '\n');
      std::string_view key = take(line, ':');
      const std::string_view first = word(key), second = word(key);
      const std::string_view value = word(line);
      if (first == "processor") {
        const auto cpu = number<uint32_t>(value);
        counts = cpu && std::find(cpus_.begin(), cpus_.end(), *cpu) != cpus_.end();
      }
      if (counts && first == "cpu" && second == "MHz")
        add(1000 * uint64_t{number<uint32_t>(value.substr(0, value.find('.'))).value_or(0)});
    }
  }
  if (n == 0) return;
  out.known |= BITNET_STATUS_CLOCK;
  out.clock_khz = static_cast<uint32_t>(sum / n);
}

// The hottest of several processors counts.
void meter::add_temperature(bitnet_device_status& out) const {
  std::optional<int32_t> hottest;
  const auto look = [&](const std::string& folder, const char* name_file, const char* value_file,
                        std::initializer_list<std::string_view> names) {
    for (uint32_t i = 0; i < most_sensors; ++i) {
      const std::string at = root_ + folder + std::to_string(i) + "/";
      const std::string all = content(at + name_file);
      std::string_view text = all;
      if (std::find(names.begin(), names.end(), word(text)) == names.end()) continue;
      const auto value = number_in<int32_t>(at + value_file);
      constexpr int32_t coldest = -100'000, too_hot = 300'000;  // outside: a broken sensor
      if (value && *value > coldest && *value < too_hot)
        hottest = std::max(*value, hottest.value_or(*value));
    }
  };
  look("sys/class/hwmon/hwmon", "name", "temp1_input",
       {"coretemp", "k10temp", "zenpower", "cpu_thermal"});
  if (!hottest)
    look("sys/class/thermal/thermal_zone", "type", "temp",
         {"x86_pkg_temp", "cpu-thermal", "cpu_thermal"});
  if (!hottest) return;
  out.known |= BITNET_STATUS_TEMPERATURE;
  out.temperature_millicelsius = *hottest;
}

}  // namespace bitnet::cpu
